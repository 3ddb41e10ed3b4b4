# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains the estimators of tensorflow-ranking to order images by their digit.

  python -m tests.living.tensorflow_ranking_program
"""

from __future__ import annotations

# isort: off
import tfplugin  # noqa: F401 (the one line that a program adds)
import tensorflow as tf
import tensorflow_ranking as tfr
# isort: on

import tempfile

from tests.living import digits
from tests.living import trial

_STEPS = 20
_LIST = 8  # Images in a list; a batch has 16 lists.
_SPEC = {'pixels': tf.io.FixedLenFeature([64], tf.float32)}


def input_fn():
  """Lists of images, and how far up each belongs: 0 to 4."""
  pixels, labels = digits.read()
  return tf.data.Dataset.from_tensor_slices((
      {'pixels': (pixels / 16).astype('float32').reshape(-1, _LIST, 64)},
      (labels // 2).astype('float32').reshape(-1, _LIST),
  )).batch(digits.BATCH // _LIST).repeat()


def main():
  columns = {'pixels': tf.feature_column.numeric_column('pixels', (64,))}
  deep = tfr.estimator.make_dnn_ranking_estimator(
      columns, hidden_units=[32], learning_rate=0.05,
      listwise_inference=True, model_dir=tempfile.mkdtemp())
  additive = tfr.estimator.make_gam_ranking_estimator(
      columns, example_hidden_units=[8], learning_rate=0.05,
      listwise_inference=True, model_dir=tempfile.mkdtemp())
  serving = tfr.data.build_ranking_serving_input_receiver_fn(
      tfr.data.EIE, context_feature_spec={}, example_feature_spec=_SPEC)
  results = {
      'make_dnn_ranking_estimator': trial.live(
          deep, input_fn, _STEPS, serving),
      'make_gam_ranking_estimator': trial.live(additive, input_fn, _STEPS)}
  results['make_dnn_ranking_estimator']['clipped'] = trial.clipped(
      deep, input_fn, _STEPS, {'group_score/dense/kernel': 0}, 0.5)
  trial.report(results)


if __name__ == '__main__':
  main()
