# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The state of v1 optimizers, and the way they apply gradients."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Callable
from typing import Optional

import tensorflow as tf

# How Estimator's loss is scaled.
from tensorflow.python.distribute import distribute_utils

tf1 = tf.compat.v1

# Where Keras keeps its optimizers; importing them would load all of Keras.
_KERAS_OPTIMIZERS = 'keras.src.optimizers'
# The methods of optimizers, v1 and Keras', that call a loss function.
_CALLS_OF_LOSS = ('minimize', 'compute_gradients', '_compute_gradients')


def create_optimizer_state(optimizer: tf1.train.Optimizer,
                           var_list: Sequence[tf.Variable]) -> None:
  """Creates every slot and non-slot variable `optimizer` keeps for `var_list`.

  The public API creates them inside `apply_gradients` only. Inside a `tf.cond`
  that is too late: the variables would be named after the branch.

  Args:
    optimizer: A v1 optimizer, not a wrapper.
    var_list: The variables that it is going to update.
  """
  with tf.init_scope():
    optimizer._create_slots(var_list)


def is_made_by_optimizer() -> bool:
  """Whether an optimizer is at work where this is called, and makes a variable.

  An optimizer makes variables of its own with the functions that a model uses,
  and no argument tells them apart. The stack does: a method of an optimizer is
  in it, and nothing of a model that a loss function builds is nearer.
  """
  frame = inspect.currentframe()
  while frame is not None:
    owner = type(frame.f_locals.get('self'))
    if any(base is tf1.train.Optimizer or
           base.__module__.startswith(_KERAS_OPTIMIZERS)
           for base in owner.__mro__):
      return frame.f_code.co_name not in _CALLS_OF_LOSS
    if issubclass(owner, tf.Module):
      return False
    frame = frame.f_back
  return False


def learning_rate_of(optimizer: tf1.train.Optimizer):
  """Returns the learning rate that `optimizer` was given, or None.

  No v1 optimizer has a public attribute for it: Adam and AdamW keep it in
  `_lr`, the others in `_learning_rate`.

  Args:
    optimizer: A v1 optimizer; a wrapper has the rate of its inner optimizer.

  Returns:
    A number, a tensor or the value of the callable that was passed; None where
    the optimizer keeps no learning rate under either name.
  """
  for attribute in ('_lr', '_learning_rate'):
    rate = getattr(optimizer, attribute, None)
    if rate is not None:
      return rate() if callable(rate) else rate
  inner = wrapped_optimizer(optimizer)
  return None if inner is None else learning_rate_of(inner)


def wrapped_optimizer(optimizer: tf1.train.Optimizer):
  """Returns the optimizer that another one holds, or None.

  All wrappers, of TensorFlow and of this project, keep it in private fields;
  there is no public accessor.

  Args:
    optimizer: Any v1 optimizer.
  """
  for field in ('_optimizer', '_opt'):
    inner = getattr(optimizer, field, None)
    if isinstance(inner, tf1.train.Optimizer):
      return inner
  return None


def optimizer_of_update(merge_fn: Callable) -> Optional[tf1.train.Optimizer]:
  """Returns the optimizer whose update `merge_fn` is, or None.

  In a replica context, `apply_gradients` hands a private method of its own to
  `merge_call`.

  Args:
    merge_fn: The function that `merge_call` was given.
  """
  optimizer = getattr(merge_fn, '__self__', None)
  if (isinstance(optimizer, tf1.train.Optimizer) and
      merge_fn.__name__ == '_distributed_apply'):
    return optimizer
  return None


def refuses_nothing(error: ValueError) -> bool:
  """Whether an optimizer was given no gradient; the error has no class.

  Args:
    error: An error of `apply_gradients`.
  """
  return bool(re.match('No (variables|gradients) provided', str(error)))


def distributed_apply(optimizer: tf1.train.Optimizer, strategy,
                      grads_and_vars: Sequence, global_step, name):
  """`optimizer.apply_gradients` for a cross-replica context.

  The public method refuses that context and names this private one.

  Args:
    optimizer: A v1 optimizer, not a wrapper.
    strategy: The strategy, or a stand-in for it.
    grads_and_vars: Pairs of a per-replica gradient and a variable.
    global_step: Incremented by 1, or None.
    name: Of the returned op, or None.
  """
  return optimizer._distributed_apply(
      strategy, grads_and_vars, global_step, name)


def implements_updates(optimizer: tf1.train.Optimizer) -> bool:
  """Whether `optimizer` has the per-variable updates of the v1 protocol.

  They are the documented way to write an optimizer, under private names.

  Args:
    optimizer: A v1 optimizer.
  """
  base = tf1.train.Optimizer
  return (type(optimizer)._apply_dense is not base._apply_dense or
          type(optimizer)._resource_apply_dense is not
          base._resource_apply_dense)


def strategy_divides_loss() -> bool:
  """Whether `compute_gradients` divides the loss by the number of replicas.

  v1 optimizers do so in a strategy under an Estimator, unless the last loss
  that was built was a sum. The rule is in a private function of theirs.
  """
  return (distribute_utils.get_loss_reduction() ==
          tf.distribute.ReduceOp.MEAN)


def is_loss_scaled() -> bool:
  """Whether `compute_gradients` has divided the last loss by the replicas.

  v1 optimizers note it on the graph; there is no public way to ask.
  """
  return getattr(tf1.get_default_graph(), '_is_loss_scaled_by_optimizer', False)
