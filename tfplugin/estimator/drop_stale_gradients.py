# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decorator for a model_fn whose stale gradients are dropped."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from tfplugin import types
from tfplugin.distribute import graph_order
from tfplugin.distribute.staleness import staleness_counters
from tfplugin.distribute.staleness import staleness_gate
from tfplugin.distribute.updates import optimizer_interception
from tfplugin.estimator import decorator_stack
from tfplugin.estimator import model_fn as model_fn_lib
from tfplugin.ops import nonfinite
from tfplugin.ops import staleness as staleness_ops
from tfplugin.optimizers import drop_stale_gradient

tf1 = tf.compat.v1


def drop_stale_gradients(
    model_fn: types.ModelFn | None = None,
    *,
    staleness: int,
    use_locking: bool = False,
    on_nonfinite: str = nonfinite.APPLY,
) -> types.ModelFn:
  """Returns a model_fn that drops gradients that are too many steps late.

  For an Estimator in a cluster of parameter servers that is described by
  `TF_CONFIG`. Every optimizer that the model_fn applies becomes a
  `tfplugin.DropStaleGradientOptimizer`, with the same numbers as if it were
  written there; see it for the rule and the counters. The model_fn stays as it
  is. It may have one plain `tf.compat.v1.train` optimizer or several, made
  anywhere, and use `minimize` or its own gradients. A
  DropStaleGradientOptimizer of the model_fn is left as it is.

  EVAL and PREDICT are not changed. A checkpoint has the names of the plain
  model, and `stale_counter`. Training continues from a checkpoint of the
  undecorated model_fn, unless it brings its own Saver; the reverse works as
  well. The rest of the spec is left as it is.

  Args:
    model_fn: As for `tf.estimator.Estimator`. Left out, a decorator is
      returned, for `@drop_stale_gradients(staleness=4)`.
    staleness: The largest staleness that is applied, in global steps.
    use_locking: See `tfplugin.DropStaleGradientOptimizer`.
    on_nonfinite: The policy for gradients with a NaN or an infinity: `'apply'`,
      `'drop'` or `'raise'`; see the optimizer.

  Returns:
    A model_fn with the same signature.

  Raises:
    TypeError: `model_fn` is not callable, `staleness` not an integer. When
      called: the model_fn returns no EstimatorSpec.
    ValueError: `staleness` is negative; `on_nonfinite` is another word; the
      model_fn does not take `features`; a decorator below this one must be
      above it. When called: no loss, no train_op, or no v1 optimizer.

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
  nonfinite.check_policy(on_nonfinite)

  def rule_of(call: model_fn_lib.ModelFnCall):
    gate = staleness_gate.OneDecision(staleness, on_nonfinite)
    interception = optimizer_interception.Interception(
        functools.partial(
            drop_stale_gradient.BehindGate, gate=gate, staleness=staleness,
            use_locking=use_locking, on_nonfinite=on_nonfinite),
        drop_stale_gradient.DropStaleGradientOptimizer, is_whole=True)

    def finish(spec):
      interception.audit.check(
          f'`{decorator_stack.DROP_STALE}`', spec.train_op,
          tf1.trainable_variables(), staleness_gate.AUDITED)
      _gate_own_count(gate, interception, spec)
      if not isinstance(spec, tf.estimator.EstimatorSpec):
        return spec  # The spec of TPUEstimator, which makes its scaffold later.
      optimizers = [*interception.wrappers, *interception.already_wrapped]
      return staleness_counters.with_saver(spec, call.config, optimizers)

    return model_fn_lib.TrainingRule(interception, finish)

  return model_fn_lib.decorate_training(
      model_fn, rule_of, decorator_stack.DROP_STALE,
      f'tfplugin.DropStaleGradientOptimizer(opt, staleness={staleness})')


def _gate_own_count(gate: staleness_gate.OneDecision,
                    interception: optimizer_interception.Interception,
                    spec: Any) -> None:
  """Drops the writes of the step that the model makes beside optimizers."""
  step = tf1.train.get_global_step()
  if step is None or gate.accepted_here is None:
    return  # The model's own DropStaleGradientOptimizer decides.
  if gate.accepted_here.op not in graph_order.upstream(
      tf.nest.flatten(spec.train_op)):
    return  # Hooks run the optimizers. The train op counts, and draws no batch.
  staleness_gate.drop_writes_of_step(
      gate.accepted_here, step,
      list(interception.audit.unaudited(spec.train_op, step)),
      f'`{decorator_stack.DROP_STALE}`')
