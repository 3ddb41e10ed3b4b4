# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading the data: the shipped files, small ones, damaged ones."""

import gzip

import numpy as np
import pytest

from tfplugin.bin import datasets


def _row(label, pixel=0):
  return ','.join([str(pixel)] * 64 + [str(label)])


def _write(path, lines):
  path.write_text('\n'.join(lines) + '\n')
  return path


def test_the_shipped_digits():
  digits = datasets.load_digits()
  # 1,797 rows, the last of each five held out: 1797 // 5 = 359.
  assert digits.train.inputs.shape == (1438, 64)
  assert digits.test.inputs.shape == (359, 64)
  for part in (digits.train, digits.test):
    assert part.inputs.min() == 0.0 and part.inputs.max() == 1.0
    assert set(part.labels) == set(range(10))


def test_every_fifth_row_is_held_out(tmp_path):
  path = _write(tmp_path / 'd.csv', [_row(i % 10, i) for i in range(11)])
  digits = datasets.load_digits(path)
  np.testing.assert_array_equal(digits.test.labels, [4, 9])
  np.testing.assert_array_equal(digits.train.labels,
                                [0, 1, 2, 3, 5, 6, 7, 8, 0])
  np.testing.assert_allclose(digits.test.inputs[:, 0], [4 / 16, 9 / 16])


@pytest.mark.parametrize('line, number', [
    (_row(10), 2), (_row(1, 17), 2), (_row(1)[:-2], 2), (_row(1) + ',1', 2),
    (_row('x'), 2), (_row(1, -1), 2), ('', 2)])
def test_a_malformed_row_is_named(tmp_path, line, number):
  path = _write(tmp_path / 'd.csv', [_row(1), line, _row(2)])
  with pytest.raises(ValueError, match=f'Line {number} of .*d.csv must be 64'):
    datasets.load_digits(path)


def test_truncated_digits_are_refused(tmp_path):
  whole = datasets.find_data_file(datasets.DIGITS_FILE).read_bytes()
  path = tmp_path / 'cut.csv.gz'
  path.write_bytes(whole[:len(whole) // 2])
  with pytest.raises(ValueError, match='must be complete.*truncated'):
    datasets.load_digits(path)


def test_damaged_digits_are_refused(tmp_path):
  whole = bytearray(datasets.find_data_file(datasets.DIGITS_FILE).read_bytes())
  whole[20000:20100] = bytes(100)
  path = tmp_path / 'damaged.csv.gz'
  path.write_bytes(whole)
  with pytest.raises(ValueError, match='must be'):
    datasets.load_digits(path)


def test_the_shipped_digits_cut_at_a_line_are_refused(tmp_path):
  text = gzip.decompress(
      datasets.find_data_file(datasets.DIGITS_FILE).read_bytes()).splitlines()
  path = tmp_path / datasets.DIGITS_FILE
  path.write_bytes(gzip.compress(b'\n'.join(text[:1000]) + b'\n'))
  with pytest.raises(ValueError, match='1000 of 1797 lines'):
    datasets.load_digits(path)


def test_a_line_that_does_not_end_is_refused(tmp_path):
  path = tmp_path / 'd.csv'
  path.write_text(_row(1) + '\n' + _row(2)[:50])
  with pytest.raises(ValueError, match='line 2 does not end'):
    datasets.load_digits(path)


def test_a_file_with_nothing_to_hold_out_is_refused(tmp_path):
  path = _write(tmp_path / 'd.csv', [_row(1)] * 4)
  with pytest.raises(ValueError, match='Received: 4 and 0 examples. Give a la'):
    datasets.load_digits(path)
  path = _write(tmp_path / 't.txt', ['X1:1 too few words'])
  with pytest.raises(ValueError, match='Received: 0 and 0 examples'):
    datasets.load_word_pairs(path)


def test_a_file_that_is_not_there():
  for path in ('/nowhere/digits.csv', '/'):
    with pytest.raises(FileNotFoundError, match='^--data_file: no such file: '):
      datasets.load_digits(path)
  with pytest.raises(FileNotFoundError, match='--data_file'):
    datasets.find_data_file('nothing.csv')


def test_word_pairs_by_hand(tmp_path):
  # Four times `a b c`; the rare `z` is left out, so that c follows b.
  path = _write(tmp_path / 't.txt', [
      'X1:1 a b c', 'X1:2 A, b z c.', 'X2:1 a b c', 'X2:2 a b; c a',
      'X2:3 c b'])
  pairs = datasets.load_word_pairs(path)
  # a: 5, b: 5, c: 5; equal counts stay in the order of the text.
  assert pairs.num_classes == 3
  # The held-out verse is the fifth: c b.
  np.testing.assert_array_equal(pairs.test.inputs, [2, 1])
  np.testing.assert_array_equal(pairs.test.labels, [1, 2])
  # Verse 1 in both directions at distances 1 and 2.
  np.testing.assert_array_equal(pairs.train.inputs[:6], [0, 0, 1, 1, 2, 2])
  np.testing.assert_array_equal(pairs.train.labels[:6], [1, 2, 0, 2, 0, 1])


def test_the_shipped_text():
  pairs = datasets.load_word_pairs()
  assert 500 < pairs.num_classes < 2000
  assert len(pairs.train.labels) > 3 * len(pairs.test.labels) > 30000
  assert pairs.train.inputs.max() < pairs.num_classes


@pytest.mark.parametrize('lines, number', [
    (['X1:1 a', 'X1:3 b'], 2), (['X1:1 a', 'X3:1 b'], 2), (['X1:2 a'], 1),
    (['X1:1 a', 'no verse'], 2)])
def test_a_missing_verse_is_named(tmp_path, lines, number):
  with pytest.raises(ValueError, match=f'Line {number} .*verse that follows'):
    datasets.load_word_pairs(_write(tmp_path / 't.txt', lines))
