# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains every estimator of deepctr on pixels as categories.

  python -m tests.living.deepctr_program
"""

from __future__ import annotations

# isort: off
import tfplugin  # noqa: F401 (the one line that a program adds)
import deepctr.estimator
import tensorflow as tf
# isort: on

from tests.living import digits
from tests.living import trial

_STEPS = 20
_PIXELS = [10, 13, 20, 21, 26, 29, 36, 42, 43, 53]
_DECORATED = ('DeepFMEstimator', 'WDLEstimator')


def columns():
  """Returns the columns of the linear part, and of the deep one."""
  # 17 shades of grey are 17 categories.
  categories = [tf.feature_column.categorical_column_with_identity(
      f'pixel_{pixel}', 17) for pixel in _PIXELS]
  return categories, [
      *(tf.feature_column.embedding_column(category, 4)
        for category in categories), tf.feature_column.numeric_column('mean')]


def input_fn():
  """Is the digit five or more?"""
  pixels, labels = digits.read()
  features = {f'pixel_{pixel}': pixels[:, [pixel]] for pixel in _PIXELS}
  features['mean'] = pixels.mean(1, keepdims=True).astype('float32') / 16
  return tf.data.Dataset.from_tensor_slices(
      (features, (labels >= 5).astype('float32'))).batch(digits.BATCH).repeat()


def make(name):
  """Makes an estimator of the package, by its name."""
  linear, deep = columns()
  factory = getattr(deepctr.estimator, name)
  config = tf.estimator.RunConfig(tf_random_seed=1)
  if name == 'PNNEstimator':  # It has no linear part.
    return factory(deep, config=config)
  if name == 'AFMEstimator':  # And this none for numbers.
    return factory(linear, deep[:-1], config=config)
  return factory(linear, deep, config=config)


def main():
  specs = tf.feature_column.make_parse_example_spec(columns()[1])
  serving = (
      tf.estimator.export.build_parsing_serving_input_receiver_fn(specs))
  results = {}
  for name in sorted(dir(deepctr.estimator)):
    if not name.endswith('Estimator'):
      continue
    try:
      estimator = make(name)
      results[name] = trial.live(estimator, input_fn, _STEPS, serving)
      if name in _DECORATED:
        results[name]['clipped'] = trial.clipped(
            estimator, input_fn, _STEPS, {'dnn/kernel': 0}, 0.5)
    except Exception as error:  # noqa: BLE001 (each has its own line)
      results[name] = {'error': f'{type(error).__name__}: {error}'}
    trial.report(results)  # The last line is taken: whatever was reached.


if __name__ == '__main__':
  main()
