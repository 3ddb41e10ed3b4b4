# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decorator for a model_fn whose variables are clipped after each update."""

from __future__ import annotations

import functools

import tensorflow as tf

from tfplugin import types
from tfplugin.distribute.clipping import clip
from tfplugin.distribute.clipping import clip_rules
from tfplugin.distribute.updates import optimizer_interception
from tfplugin.estimator import decorator_stack
from tfplugin.estimator import model_fn as model_fn_lib
from tfplugin.ops import norm_clipping
from tfplugin.optimizers import variable_clipping

tf1 = tf.compat.v1

_Optimizer = variable_clipping.VariableClippingOptimizer


def clip_variables(
    model_fn: types.ModelFn | None = None,
    *,
    rules: clip_rules.Rules,
    max_norm: float,
    rows: str = 'touched',
    use_locking: bool = False,
) -> types.ModelFn:
  """Returns a model_fn that clips the norm of variables after each update.

  Every optimizer that the model_fn applies becomes a
  `tfplugin.VariableClippingOptimizer`, with the same numbers as if it were
  written there; see it for the rule. The model_fn stays as it is. It may have
  one plain `tf.compat.v1.train` optimizer or several, made anywhere, and use
  `minimize` or its own gradients. A VariableClippingOptimizer of the model_fn
  is left as it is. EVAL and PREDICT are not changed, and checkpoints have the
  names of the plain model.

  Each of several optimizers clips the variables that it updates. A rule must
  select a trainable variable of the model; any optimizer may update it. A
  warning names each rule of which no optimizer updates a variable.

  Args:
    model_fn: As for `tf.estimator.Estimator`. Left out, a decorator is
      returned, for `@clip_variables(rules={'table': 1}, max_norm=2.0)`.
    rules: Maps variables to the dims that a slice extends over:
      `{'embedding': 1}` clips rows, and `[]` each value by itself. A key is a
      regular expression, searched in a variable's name, or a predicate of the
      name.
    max_norm: The largest L2 norm of a slice.
    rows: `'touched'` or `'all'`, see `tfplugin.VariableClippingOptimizer`.
    use_locking: See `tfplugin.VariableClippingOptimizer`.

  Returns:
    A model_fn with the same signature.

  Raises:
    TypeError: An argument has the wrong type. When called: the model_fn returns
      no EstimatorSpec.
    ValueError: An argument is out of range; the model_fn does not take
      `features`; a decorator below this one must be above it. When called: no
      loss, no train_op, no v1 optimizer, or a rule that selects nothing.

  Differences from tf.contrib: it had the optimizer only.

  Example:
    >>> import tensorflow as tf
    >>> import tfplugin.estimator
    >>> tf1 = tf.compat.v1
    >>> @tfplugin.estimator.clip_variables(rules={'table': 1}, max_norm=2.0)
    ... def model_fn(features, labels, mode):
    ...   table = tf1.get_variable(
    ...       'table', initializer=[[6.0, 8.0], [0.3, 0.4]])
    ...   loss = tf.reduce_sum(tf.gather(table, features))
    ...   optimizer = tf1.train.GradientDescentOptimizer(0.0)
    ...   train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    ...   return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    >>> def input_fn():
    ...   return tf.data.Dataset.from_tensors(tf.constant([0, 0]))
    >>> estimator = tf.estimator.Estimator(model_fn)
    >>> _ = estimator.train(input_fn)
    >>> estimator.get_variable_value('table').astype(float).round(3).tolist()
    [[1.2, 1.6], [0.3, 0.4]]
  """
  norm_clipping.check_max_norm(max_norm)
  parsed = clip_rules.parse(rules)
  clip_rules.check_rows(rows)

  def rule_of(unused_call: model_fn_lib.ModelFnCall):
    interception = optimizer_interception.Interception(
        functools.partial(
            variable_clipping.SharesRules, vars_to_clip_dims=parsed,
            max_norm=max_norm, use_locking=use_locking, rows=rows), _Optimizer)

    def finish(spec):
      interception.audit.check(
          f'`{decorator_stack.CLIP}`', spec.train_op,
          clip_rules.selected(parsed, tf1.trainable_variables()), clip.AUDITED)
      _warn_of_unused(parsed, interception)
      return spec

    return model_fn_lib.TrainingRule(interception, finish)

  return model_fn_lib.decorate_training(
      model_fn, rule_of, decorator_stack.CLIP,
      'tfplugin.VariableClippingOptimizer(opt, rules, max_norm)')


def _warn_of_unused(
    rules: tuple[clip_rules.Rule, ...],
    interception: optimizer_interception.Interception) -> None:
  """Warns about rules that no optimizer uses; the model_fn may have its own."""
  if interception.already_wrapped:
    return
  used = set().union(*(w.used_rules for w in interception.wrappers))
  clip_rules.warn_of_unused(
      [rule for rule in rules if rule not in used], tf1.trainable_variables(),
      'an optimizer of the model_fn',
      'Put them into the `var_list` of an optimizer, or leave out the rule.')
