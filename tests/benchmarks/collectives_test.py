# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sums of docs/speed.md are those of results/collectives.json."""
# BUILD data: //:docs
# BUILD data: //benchmarks:results

import numpy as np

from benchmarks import page_part
from benchmarks.network import collectives

_ABOUT = dict(machine='A machine', cores=2, kernel='6.0', load_before=0.0,
              python='3.11.0', tensorflow='2.15.1', commit='abc')
_BY_HAND = {'about': _ABOUT, 'ways': {
    '10M floats': [[80.0, 60.0], [90.0, 70.0], [70.0, 90.0]]}}


def test_a_table_by_hand():
  text = collectives.PART.section(_BY_HAND)
  assert '| 10M floats | 80 (70 to 90) | 70 (60 to 90) |' in text


def test_the_page_has_what_the_results_say():
  text = page_part.PAGE.read_text(encoding='utf-8')
  results = collectives.PART.read()
  assert collectives.PART.written(text, results) == text
  assert collectives.PART.written(text, _BY_HAND) != text
  for name, every in (results or {}).get('ways', {}).items():
    row = text[text.index(f'| {name} | '):].partition('\n')[0]
    for cell, figures in zip(row.split(' | ')[1:], zip(*every)):
      assert np.isclose(float(cell.split()[0]), np.median(figures), rtol=1e-3)


def test_packs_have_the_size_that_is_asked_for():
  tensors = [np.zeros(size, np.float32) for size in (1, 2, 3, 4)]

  class Tensor:

    def __init__(self, array):
      self.shape = self
      self.num_elements = lambda: array.size

  packs = collectives._packs([Tensor(array) for array in tensors], 12)
  sizes = [[tensor.num_elements() for tensor in pack] for pack in packs]
  assert sizes == [[1, 2], [3], [4]]
