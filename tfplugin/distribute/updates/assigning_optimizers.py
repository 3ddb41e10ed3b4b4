# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Optimizers that assign to the variables by themselves, in a strategy.

TensorFlow tells a strategy of an optimizer's updates where the base class makes
them: gradients are reduced, and each variable is updated by the strategy. A
class that overrides `apply_gradients` and assigns (that of BERT, say) passes
all of it by. Here its whole `apply_gradients` is called, once for each copy of
the variables, between the two:

  reduced = extended.batch_reduce_to(gradients)
  apply_gradients(reduced)                        on each device
  extended.update(variable, fn)                   fn has nothing left to do

The variables that it makes are state of the optimizer, as slots are.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import optimizer_interception

tf1 = tf.compat.v1


class MeetsAssigningOptimizers:
  """Goes in front of the extended class of a strategy."""

  def _call_for_each_replica(self, fn, args, kwargs):
    if not tf1.executing_eagerly_outside_functions():
      fn = _tf_internals.python_function_of(fn)
    elif _tf_internals.python_function_of(fn) is not fn:
      # The base class builds the replicas in the function.
      return super()._call_for_each_replica(fn, args, kwargs)

    def met(*args, **kwargs):
      with optimizer_interception.Interception(
          _OnEachCopy, _OnEachCopy, only=_tf_internals.assigns_by_itself,
      ).active():
        return fn(*args, **kwargs)

    return super()._call_for_each_replica(met, args, kwargs)


class _OnEachCopy:
  """Applies an optimizer once for each copy of the variables.

  Each copy has state of its own, of one name: that of the first copy.
  """

  def __init__(self, optimizer: tf1.train.Optimizer):
    self._optimizer = optimizer
    self._state = {}

  def apply_gradients(self, grads_and_vars: types.GradsAndVars,
                      global_step: Optional[tf.Variable] = None,
                      name: Optional[str] = None, **kwargs: Any):
    """Applies the gradients of all replicas; called in each."""
    grads_and_vars = list(grads_and_vars)
    # By closure: as arguments the variables would arrive as copies.
    merged = functools.partial(
        self._merged, variables=[v for _, v in grads_and_vars],
        global_step=global_step, name=name, apply_kwargs=kwargs)
    return tf.distribute.get_replica_context().merge_call(
        merged, args=(tuple(g for g, _ in grads_and_vars),))

  def _merged(self, strategy, gradients: Sequence[Any], *,
              variables: list[tf.Variable], global_step, name, apply_kwargs):
    """Reduces, applies and tells the strategy; in cross-replica context."""
    extended = strategy.extended
    pairs = [(g, v) for g, v in zip(gradients, variables) if g is not None]
    reduced = extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, pairs)
    copies = [_copies(strategy, v) for _, v in pairs]
    updates = []
    for index in range(max(map(len, copies), default=0)):
      own = [(_of_copy(strategy, gradient, index), copy[index])
             for gradient, copy in zip(reduced, copies)]
      with tf1.device(extended.worker_devices[index]), \
          self._making_state(strategy, pairs, index):
        updates.append(self._optimizer.apply_gradients(
            own, global_step=None if index else global_step, name=name,
            **apply_kwargs))
    updates = [update for update in updates if update is not None]

    def nothing_left(component, gradient):
      del component, gradient
      return tf.group(*updates)

    return tf.group(*tf.nest.flatten([
        strategy.experimental_local_results(extended.update(
            variable, nothing_left, args=(gradient,)))
        for gradient, (_, variable) in zip(reduced, pairs)]))

  @contextlib.contextmanager
  def _making_state(self, strategy, pairs, index: int) -> Iterator[None]:
    """Makes every variable inside it as a slot, for the copy `index`."""

    def create(next_creator, **kwargs):
      name = kwargs.get('name') or 'Variable'
      name = name.replace(f'/replica_{index}', '') if index else name
      if name not in self._state or not index:
        owner = max((v for _, v in pairs), key=lambda v: (
            len(v.op.name) if name.startswith(v.op.name) else 0))
        with tf.init_scope():
          self._state[name] = next_creator(
              **dict(kwargs, name=name, colocate_with=owner))
      copies = _copies(strategy, self._state[name])
      return copies[index if len(copies) > 1 else 0]

    with tf.variable_creator_scope(create):
      yield


def _copies(strategy, variable: tf.Variable) -> Sequence[tf.Variable]:
  """Returns the copies of `variable` in this process, without wrappers."""
  if isinstance(variable, _tf_internals.AggregatingVariable):
    variable = variable.get()
  return strategy.experimental_local_results(variable)


def _of_copy(strategy, gradient: Any, index: int) -> types.Gradient:
  """Returns the reduced gradient for the copy `index`."""
  gradients = strategy.experimental_local_results(gradient)
  return gradients[index if len(gradients) > 1 else 0]
