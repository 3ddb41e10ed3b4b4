# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Warnings and errors in the logs of a run."""

from __future__ import annotations

import collections
import os
import pathlib
import re
from typing import NamedTuple
from typing import Union

# absl: 'W1122 18:55:53.1 22 file.py:12] text'; TensorFlow: 'WARNING:...: text'.
_LINE = re.compile(r'^(?:[WE]\d{4} [\d:.]+\s+\d+ [^\]]*\] |'
                   r'(?:WARNING|ERROR):\w+:|'
                   r'\d{4}-\d\d-\d\d [\d:.]+: [WE] \S+\] )(.*)')
# The part at the end of each log that is read.
_TAIL_BYTES = 4 << 20
_MAX_CHARS = 300
_MAX_WARNINGS = 50


class Warning(NamedTuple):  # noqa: A001 (it is what a run calls it)
  """A warning, or an error, that a task logged.

  `text` is its first line, and `count` its number of occurrences.
  """

  task: str
  text: str
  count: int


def read_warnings(run_dir: Union[str, os.PathLike]) -> list[Warning]:
  """Returns the warnings of `logs/<task>.log`, the most frequent first.

  Warnings of deprecation are left out: they are for the author of the model.
  """
  counts = collections.Counter()
  for path in sorted(pathlib.Path(run_dir, 'logs').glob('*-*.log')):
    job, _, index = path.stem.rpartition('-')
    with open(path, 'rb') as file:
      file.seek(max(path.stat().st_size - _TAIL_BYTES, 0))
      lines = file.read().decode(errors='replace').splitlines()
    counts.update((f'{job}:{index}', match[1][:_MAX_CHARS])
                  for match in map(_LINE.match, lines)
                  if match and 'deprecated' not in match[1])
  return [Warning(task, text, count) for (task, text), count
          in counts.most_common(_MAX_WARNINGS)]
