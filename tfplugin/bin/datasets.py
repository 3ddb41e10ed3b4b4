# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Real data for the main job: hand-written digits, and a text as word pairs."""

from __future__ import annotations

import collections
import gzip
import importlib.util
import os
import pathlib
import re
import zlib
from typing import NamedTuple

import numpy as np

DIGITS_FILE = 'digits.csv.gz'
TEXT_FILE = 'genesis.txt'
# The numbers of lines of the shipped files, to detect truncated ones.
_SHIPPED_LENGTHS = {DIGITS_FILE: 1797, TEXT_FILE: 1533}

# Of every five rows or verses the last is held out for evaluation.
_HELD_OUT = 5
_NUM_PIXELS = 64
_MAX_PIXEL = 16
_WINDOW = 2
_MIN_COUNT = 4
_VERSE = re.compile(r'\w+?(\d+):(\d+) (.+)')


class Examples(NamedTuple):
  """Rows of inputs, each with the label to predict from it."""

  inputs: np.ndarray
  labels: np.ndarray


class Split(NamedTuple):
  """A data set: rows to learn from, and rows that are held out.

  Labels and the ids of words are in `[0, num_classes)`.
  """

  train: Examples
  test: Examples
  num_classes: int


def find_data_file(name: str) -> pathlib.Path:
  """Returns the path of a data file that comes with tfplugin."""
  places = [pathlib.Path(__file__).absolute().parents[2] / 'testdata']
  spec = importlib.util.find_spec('tfplugin.testdata')
  if spec is not None:
    places += map(pathlib.Path, spec.submodule_search_locations or ())
  for place in places:
    if (place / name).is_file():
      return place / name
  raise FileNotFoundError(
      f'The data file must be in one of {[str(p) for p in places]}. Received: '
      f'{name!r}. Install tfplugin again, or give your own with --data_file.')


def load_digits(path: str | os.PathLike = '') -> Split:
  """Loads images of digits with their labels.

  The file has comma-separated rows, plain or gzip: 64 pixels in 0..16, then the
  label in 0..9. An empty `path` is the shipped file. Inputs are `float32` of
  shape `[rows, 64]` in [0, 1], labels `int32` of shape `[rows]`. `ValueError`
  is raised for a damaged file, with the place, and for one that is too small.
  """
  path = pathlib.Path(path) if path else find_data_file(DIGITS_FILE)
  rows = [_digit(path, number, line)
          for number, line in enumerate(_read_lines(path), 1)]
  table = np.array(rows, np.float32)
  examples = Examples(table[:, :-1] / _MAX_PIXEL, table[:, -1].astype(np.int32))
  held_out = np.arange(len(rows)) % _HELD_OUT == _HELD_OUT - 1
  return _split(path, _take(examples, ~held_out), _take(examples, held_out), 10)


def load_word_pairs(path: str | os.PathLike = '') -> Split:
  """Loads pairs of words that stand near each other in one verse.

  The file has lines such as `Ge1:1 In the beginning ...`, plain or gzip,
  chapters and verses in order. An empty `path` is the shipped file. Inputs and
  labels are ids of words at most two places apart, both `int32` of shape
  `[pairs]`. Words with fewer than four occurrences are left out. The most
  frequent word has the id 0. `ValueError` is raised for a damaged file, with
  the place, and for one that is too small.
  """
  path = pathlib.Path(path) if path else find_data_file(TEXT_FILE)
  verses = _verses(path)
  counts = collections.Counter(word for verse in verses for word in verse)
  words = [word for word, count in counts.most_common() if count >= _MIN_COUNT]
  ids = {word: index for index, word in enumerate(words)}
  known = [[ids[word] for word in verse if word in ids] for verse in verses]
  train = [v for i, v in enumerate(known) if i % _HELD_OUT != _HELD_OUT - 1]
  test = known[_HELD_OUT - 1::_HELD_OUT]
  return _split(path, _pairs(train), _pairs(test), len(words))


def _split(path: pathlib.Path, train: Examples, test: Examples,
           num_classes: int) -> Split:
  sizes = len(train.labels), len(test.labels)
  if not all(sizes):
    raise ValueError(
        f'The data file {path} must have examples for training and for '
        f'evaluation, which gets the last of every {_HELD_OUT} rows or verses. '
        f'Received: {sizes[0]} and {sizes[1]} examples. Give a larger file.')
  return Split(train, test, num_classes)


def _read_lines(path: pathlib.Path) -> list[str]:
  if not path.is_file():
    raise FileNotFoundError(f'--data_file: no such file: {path}')
  opener = gzip.open if path.suffix == '.gz' else open
  try:
    with opener(path, 'rt', encoding='utf-8') as data:
      text = data.read()
  except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as e:
    raise _truncated(path, str(e)) from e
  lines = text.splitlines()
  expected = _SHIPPED_LENGTHS.get(path.name, 1)
  if not text.endswith('\n'):
    raise _truncated(path, f'line {len(lines)} does not end')
  if len(lines) < expected:
    raise _truncated(path, f'{len(lines)} of {expected} lines')
  return lines


def _truncated(path: pathlib.Path, received: str) -> ValueError:
  return ValueError(f'The data file {path} must be complete. Received: a '
                    f'truncated or damaged one ({received}). Fetch it again.')


def _malformed(path: pathlib.Path, number: int, rule: str,
               line: str) -> ValueError:
  return ValueError(f'Line {number} of the data file {path} must be {rule}. '
                    f'Received: {line[:60]!r}. Correct it, or fetch the file '
                    'again.')


def _digit(path: pathlib.Path, number: int, line: str) -> list[int]:
  fields = line.split(',')
  values = [int(f) if f.strip().isdigit() else -1 for f in fields]
  if (len(values) != _NUM_PIXELS + 1 or min(values) < 0 or
      max(values[:-1]) > _MAX_PIXEL or values[-1] > 9):
    raise _malformed(path, number, '64 pixels in 0..16 and a label in 0..9, '
                     'separated by commas', line)
  return values


def _verses(path: pathlib.Path) -> list[list[str]]:
  """Returns the words of each verse; raises if a verse is missing."""
  verses = []
  position = (0, 0)
  for number, line in enumerate(_read_lines(path), 1):
    match = _VERSE.fullmatch(line)
    found = (int(match[1]), int(match[2])) if match else None
    chapter, verse = position
    if found not in ((chapter, verse + 1), (chapter + 1, 1)):
      raise _malformed(path, number, 'the verse that follows '
                       f'{chapter}:{verse}, as in "Ge1:1 In the ..."', line)
    position = found
    verses.append(re.findall(r"[a-z']+", match[3].lower()))
  return verses


def _pairs(verses: list[list[int]]) -> Examples:
  pairs = [(verse[i], verse[j])
           for verse in verses
           for i in range(len(verse))
           for j in range(max(0, i - _WINDOW), min(len(verse), i + _WINDOW + 1))
           if i != j]
  table = np.array(pairs, np.int32).reshape([-1, 2])
  return Examples(table[:, 0], table[:, 1])


def _take(examples: Examples, chosen: np.ndarray) -> Examples:
  return Examples(examples.inputs[chosen], examples.labels[chosen])
