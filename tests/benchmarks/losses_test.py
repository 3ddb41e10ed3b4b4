# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The losses of docs/speed.md are those of results/losses.json."""
# BUILD data: //:docs
# BUILD data: //benchmarks:results
# BUILD data: //testdata

import re

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import losses
from benchmarks import page_part
from tfplugin.bin import datasets
from tfplugin.testing import clusters

_ABOUT = dict(machine='A machine', cores=2, kernel='6.0', load_before=0.0,
              python='3.11.0', tensorflow='2.15.1', commit='abc')
_BY_HAND = {'about': _ABOUT, 'losses': {
    'plain': [.1, .3, .2, .25, .15], 'int8': [.31, .31, .31, .1, .1],
    'float16': [.3, .3, .3, 9., 9.]}}


def test_a_table_by_hand():
  text = losses.PART.section(_BY_HAND)
  assert '| plain | 0.2 (0.1 to 0.3) | yes |' in text
  assert '| int8 | 0.31 (0.1 to 0.31) | no |' in text
  assert '| float16 | 0.3 (0.3 to 9) | yes |' in text


def test_the_page_has_what_the_results_say():
  text = page_part.PAGE.read_text(encoding='utf-8')
  results = losses.PART.read()
  assert losses.PART.written(text, results) == text
  assert losses.PART.written(text, _BY_HAND) != text
  part = text[text.index('## The loss with a smaller exchange'):]
  for name, every in (results or {}).get('losses', {}).items():
    assert len(every) == len(losses.SEEDS)
    row = re.search(rf'^\| {name} \| (\S+) \((\S+) to (\S+)\) \| (\w+) \|$',
                    part, re.M)
    np.testing.assert_allclose(
        [float(each) for each in row.groups()[:3]],
        [np.median(every), min(every), max(every)], rtol=1e-3)
    assert row[4] == ('yes' if np.median(every) <= max(
        results['losses']['plain']) else 'no')


@pytest.mark.distributed
def test_it_trains(monkeypatch):
  """The loss falls below that of a guess, ln 10; it is that of the centre."""
  monkeypatch.setattr(losses, '_STEPS', 250)
  seen = []
  loss_of = losses._loss_of
  monkeypatch.setattr(losses, '_loss_of', lambda values, examples: (
      seen.append(values), loss_of(values, examples))[1])
  digits = datasets.load_digits()
  loss = losses.train({}, 3, clusters.in_process_cluster(2), digits)
  assert loss < 0.5 * np.log(10)
  with tf.Graph().as_default():
    hidden = tf.constant(digits.test.inputs)
    for kernel, bias in (('kernel_0', 'bias_0'), ('kernel_1', 'bias_1')):
      hidden = tf.nn.relu(hidden @ seen[0][kernel] + seen[0][bias])
    logits = hidden @ seen[0]['kernel_2'] + seen[0]['bias_2']
    again = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=digits.test.labels, logits=logits))
    with tf.compat.v1.Session() as session:
      np.testing.assert_allclose(loss, session.run(again), rtol=1e-5)
