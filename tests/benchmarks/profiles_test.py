# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The profiles of docs/speed.md are those of results/profiles.json."""
# BUILD data: //:docs
# BUILD data: //benchmarks:results

import re

import numpy as np
import tensorflow as tf

from benchmarks import page_part
from benchmarks import profiles

tf1 = tf.compat.v1

_ABOUT = dict(machine='A machine', cores=2, kernel='6.0', load_before=0.0,
              python='3.11.0', tensorflow='2.15.1', commit='abc')


def _side(step_ms, **ops):
  return {'step_ms': step_ms, 'counts': dict.fromkeys(ops, 2),
          'ops_ms': ops}


_BY_HAND = {'about': _ABOUT, 'cases': {'sparse': [
    _side([4.0, 5.0, 9.0], Gather=2.0, Mul=0.5, A=.1, B=.1, C=.1, D=.1, E=.1),
    _side([3.0, 3.0, 3.0], Gather=2.5, Sub=1.0)]}}


def test_a_profile_by_hand():
  text = profiles.PART.section(_BY_HAND)
  assert '| ms (ops) | clipping | SGD |' in text
  assert '| `Gather` | 2 (2) | 2.5 (2) |' in text
  assert '| `Sub` | - | 1 (2) |' in text
  assert '| 2 others | 0.2 (4) | - |' in text
  assert '| the step | 5 (4 to 9) | 3 (3 to 3) |' in text
  assert text.index('Gather') < text.index('Sub') < text.index('Mul')


def test_the_page_has_what_the_results_say():
  text = page_part.PAGE.read_text(encoding='utf-8')
  results = profiles.PART.read()
  assert profiles.PART.written(text, results) == text
  assert profiles.PART.written(text, _BY_HAND) != text
  for name, (ours, _) in (results or {}).get('cases', {}).items():
    part = text[text.index(f'\n{profiles.CASES[name].title}, compared'):]
    shown = re.search(r'^\| the step \| (\S+) \((\S+) to (\S+)\)', part, re.M)
    np.testing.assert_allclose(
        [float(each) for each in shown.groups()],
        [np.median(ours['step_ms']), min(ours['step_ms']),
         max(ours['step_ms'])], rtol=1e-3)


def test_a_traced_step(monkeypatch):
  """Two products and a sum, of which the trace knows each."""
  with tf.Graph().as_default():
    x = tf.random.uniform([2, 2])  # What is constant is folded.
    step = tf.matmul(x, x) + tf.matmul(x, 2 * x)
    session = tf1.Session()

  class _Case:

    def steps(self):
      return [(session, step)]

  monkeypatch.setattr(profiles, 'CASES', {'x': _Case()})
  [side] = profiles.measure('x')
  assert side['counts']['MatMul'] == 2
  assert side['counts']['AddV2'] == side['counts']['Mul'] == 1
  assert side['ops_ms']['MatMul'] >= 0
  assert len(side['step_ms']) > 10 and min(side['step_ms']) > 0
