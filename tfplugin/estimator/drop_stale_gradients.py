# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model_fn whose stale gradients are dropped."""

from __future__ import annotations

import functools
from typing import Optional

import tensorflow as tf

from tfplugin import types
from tfplugin.distribute import optimizer_interception
from tfplugin.estimator import decorator_stack
from tfplugin.estimator import model_fn as model_fn_lib
from tfplugin.estimator import training_spec
from tfplugin.ops import staleness as staleness_ops
from tfplugin.optimizers import drop_stale_gradient

_Optimizer = drop_stale_gradient.DropStaleGradientOptimizer


def drop_stale_gradients(
    model_fn: Optional[types.ModelFn] = None,
    *,
    staleness: int,
    use_locking: bool = False,
) -> types.ModelFn:
  """Returns a model_fn that drops gradients which are too many steps late.

  For an Estimator in a cluster of parameter servers that is described by
  `TF_CONFIG`. Every optimizer that the model_fn applies becomes a
  `tfplugin.DropStaleGradientOptimizer`, with the same numbers as if it were
  written there; see it for the rule, and for what is counted. The model_fn
  stays as it is, with one plain `tf.compat.v1.train` optimizer or several, made
  anywhere, and `minimize`, or gradients of its own. One that is a
  DropStaleGradientOptimizer already is left as it is.

  EVAL and PREDICT are not touched. A checkpoint has the names of the plain
  model, and `stale_counter`.

  Args:
    model_fn: As for `tf.estimator.Estimator`. Left out, a decorator is
      returned, for `@drop_stale_gradients(staleness=4)`.
    staleness: The largest staleness that is applied, in global steps.
    use_locking: See `tfplugin.DropStaleGradientOptimizer`.

  Returns:
    A model_fn with the same signature.

  Raises:
    TypeError: `model_fn` is not callable, `staleness` not an integer. When
      called: the model_fn returns no EstimatorSpec.
    ValueError: `staleness` is negative; the model_fn does not take `features`;
      a decorator below this one must be above it. When called: no loss, no
      train_op, or no v1 optimizer.

  Differences from tf.contrib: it had the optimizer only.

  Example:
    >>> import numpy as np
    >>> import tensorflow as tf
    >>> import tfplugin.estimator
    >>> tf1 = tf.compat.v1
    >>> @tfplugin.estimator.drop_stale_gradients(staleness=4)
    ... def model_fn(features, labels, mode):
    ...   w = tf1.get_variable('w', initializer=[[0.0]])
    ...   loss = tf1.losses.mean_squared_error(labels, features @ w)
    ...   optimizer = tf1.train.GradientDescentOptimizer(0.1)
    ...   train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    ...   return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    >>> def input_fn():
    ...   x = np.array([[1.0], [2.0]], np.float32)
    ...   return tf.data.Dataset.from_tensors((x, 2.0 * x))
    >>> estimator = tf.estimator.Estimator(model_fn)
    >>> _ = estimator.train(input_fn)
    >>> estimator.get_variable_names()
    ['global_step', 'stale_counter', 'w']
    >>> # w = 0.1 * 2 * mean(x * 2 x) = 0.1 * 2 * 10 / 2
    >>> print(round(float(estimator.get_variable_value('w')[0, 0]), 4))
    1.0
  """
  staleness_ops.check_max_staleness(staleness)
  if model_fn is None:
    return functools.partial(drop_stale_gradients, staleness=staleness,
                             use_locking=use_locking)

  def run(call: model_fn_lib.ModelFnCall):
    if call.mode != tf.estimator.ModeKeys.TRAIN:
      return call()
    interception = optimizer_interception.Interception(
        lambda optimizer: _Optimizer(optimizer, staleness, use_locking),
        _Optimizer)
    with interception.active():
      spec = call()
    training_spec.check_spec(spec, decorator_stack.DROP_STALE)
    training_spec.check_applied(
        interception, decorator_stack.DROP_STALE,
        f'tfplugin.DropStaleGradientOptimizer(opt, staleness={staleness})')
    return spec

  return model_fn_lib.decorate(model_fn, run, decorator_stack.DROP_STALE)
