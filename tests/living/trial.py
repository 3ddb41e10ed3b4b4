# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Takes an estimator of another library through its life, and decorates it."""

from __future__ import annotations

import itertools
import json
import pathlib
import tempfile
import time

import numpy as np
import tensorflow as tf

import tfplugin.estimator

# Larger than any norm: what is trained must be what is trained without it.
_NO_LIMIT = 1e6


def live(estimator, input_fn, steps, serving=None, labelled=True):
  """Trains, evaluates, predicts and exports; returns what came of it.

  Args:
    estimator: Is made; its checkpoints are in a directory of its own.
    input_fn: Returns a dataset of pairs, for ever where it is trained on.
    steps: How many are trained.
    serving: What `export_saved_model` is called with, or None.
    labelled: Whether `predict` takes the pairs that training takes.
  """
  start = time.monotonic()
  _train(estimator, input_fn, steps)
  metrics = estimator.evaluate(input_fn, steps=4)
  def unlabelled():
    return input_fn().map(lambda features, _: features)

  predictions = list(itertools.islice(
      estimator.predict(input_fn if labelled else unlabelled), 3))
  for value in map(np.asarray, tf.nest.flatten([metrics, predictions])):
    # Names of classes are bytes.
    assert value.dtype.kind in 'OS' or np.isfinite(value).all(), value
  assert metrics['global_step'] == steps, metrics
  result = {name: round(float(value), 5) for name, value in metrics.items()
            if np.ndim(value) == 0 and not isinstance(value, bytes)}
  if serving is not None:
    _export(estimator, serving)
  return {**result, 'seconds': round(time.monotonic() - start, 1)}


def _export(estimator, serving):
  path = estimator.export_saved_model(tempfile.mkdtemp(), serving)
  assert (pathlib.Path(path.decode()) / 'saved_model.pb').is_file()


def _train(estimator, input_fn, steps):
  # Layers of Keras draw their first values from a generator of its own.
  tf.keras.utils.set_random_seed(1)
  estimator.train(input_fn, steps=steps)


def clipped(estimator, input_fn, steps, rules, max_norm, unordered='-'):
  """Trains twice with `clip_variables` around the estimator's model_fn.

  Args:
    estimator: Has been trained for as many steps, without a decorator.
    input_fn: As the estimator was trained with.
    steps: How many are trained.
    rules: See `tfplugin.estimator.clip_variables`; of one variable.
    max_norm: Is less than what the estimator has reached.
    unordered: Is in the names of tables whose rows are saved in any order.
  """
  (name,), (dims,) = rules, rules.values()
  trained = [_train_clipped(estimator, input_fn, steps, rules, norm)
             for norm in (_NO_LIMIT, max_norm)]
  variables = [variable for variable in estimator.get_variable_names()
               if variable in trained[0].get_variable_names()]
  assert len(variables) == len(estimator.get_variable_names())
  difference = max(np.max(np.abs(
      estimator.get_variable_value(variable).astype(np.float64)
      - trained[0].get_variable_value(variable)))
                   for variable in variables if unordered not in variable)
  norms = [_largest_norm(one, name, dims) for one in (estimator, *trained)]
  assert difference < 1e-5, difference
  assert norms[0] > max_norm > norms[2] - 1e-5, norms
  return {'difference_without_limit': float(difference),
          'norm': round(norms[0], 4), 'norm_clipped': round(norms[2], 4)}


def _train_clipped(estimator, input_fn, steps, rules, max_norm):
  decorated = tfplugin.estimator.clip_variables(
      estimator.model_fn, rules=rules, max_norm=max_norm, rows='all')
  copy = tf.estimator.Estimator(
      decorated, config=estimator.config.replace(model_dir=tempfile.mkdtemp()))
  _train(copy, input_fn, steps)
  return copy


def _largest_norm(estimator, pattern, dims):
  """The largest norm of a slice of the variables that the rule selects."""
  values = [estimator.get_variable_value(name)
            for name in estimator.get_variable_names()
            if pattern in name and '/Ada' not in name and '/Adam' not in name]
  axis = tuple(np.atleast_1d(np.asarray(dims, int)))
  return max(float(np.max(np.abs(value) if not axis else np.sqrt(
      np.sum(np.square(value), axis)))) for value in values)


def report(results):
  """Prints what a program has found, for the recorder."""
  line = json.dumps({'estimators': results}, default=str)
  print(line)  # noqa: T201 (the recorder reads it)
