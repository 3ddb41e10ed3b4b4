# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Optimizers that assign to the variables themselves, in a strategy.

The base class of v1 optimizers calls the strategy for its updates: it reduces
gradients, and updates each variable by the strategy. A class that overrides
`apply_gradients` and assigns, as the optimizer of BERT does, bypasses all of
this. Here its whole `apply_gradients` is called, once for each copy of the
variables, between the two:

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

tf1 = tf.compat.v1


class OnEachCopy:
  """Wrapper that applies an optimizer once for each copy of the variables.

  Each copy has separate state, all under the name that the first copy uses.
  """

  def __init__(self, optimizer: tf1.train.Optimizer):
    """Wraps `optimizer`, which assigns to the variables itself."""
    self._optimizer = optimizer
    self._state = {}

  def apply_gradients(self, grads_and_vars: types.GradsAndVars,
                      global_step: Optional[tf.Variable] = None,
                      name: Optional[str] = None, **kwargs: Any):
    """Applies the gradients of all replicas; called in each."""
    grads_and_vars = list(grads_and_vars)
    # By closure: `merge_call` would replace the variables by their copies.
    merged = functools.partial(
        self._merged, variables=[v for _, v in grads_and_vars],
        global_step=global_step, name=name, apply_kwargs=kwargs)
    return tf.distribute.get_replica_context().merge_call(
        merged, args=(tuple(g for g, _ in grads_and_vars),))

  def _merged(self, strategy, gradients: Sequence[Any], *,
              variables: list[tf.Variable], global_step, name, apply_kwargs):
    """Reduces, applies and updates, in cross-replica context."""
    extended = strategy.extended
    if extended.only is not None:
      raise RuntimeError(
          'An optimizer that assigns to the variables by itself must not be '
          'applied inside a `tf.cond` of one device of several. Received: '
          f'{self._optimizer!r}. Train on one device, or use an optimizer that '
          'implements `_apply_dense`, as the optimizers of TensorFlow do.')
    pairs = [(g, v) for g, v in zip(gradients, variables) if g is not None]
    reduced = extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, pairs)
    updates = []
    all_copies = list(zip(*(copies_of(strategy, v) for _, v in pairs)))
    # Each copy may create state under the same names as the first copy.
    stores = [_tf_internals.copy_of_variable_store() for _ in all_copies[1:]]
    for index, copies in enumerate(all_copies):
      own = [(_of_copy(strategy, gradient, index), copy)
             for gradient, copy in zip(reduced, copies)]
      owners = [(copy, v) for copy, (_, v) in zip(copies, pairs)]
      with tf1.device(extended.worker_devices[index]), \
          _store(stores[index - 1] if index else None), \
          self._making_state(strategy, owners, index), \
          extended.audit_here().passing(copies):
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

  def _making_state(self, strategy, owners, index: int,
                    ) -> contextlib.AbstractContextManager:
    """Makes every variable inside it as a slot of its owner, for a copy."""

    def create(next_creator, **kwargs):
      name = kwargs.get('name') or 'Variable'
      copy, owner = max(owners, key=lambda pair: (
          name.startswith(pair[0].op.name) * len(pair[0].op.name)))
      if name.startswith(copy.op.name):
        name = owner.name.split(':')[0] + name[len(copy.op.name):]
      if name not in self._state or not index:
        with tf.init_scope():
          self._state[name] = next_creator(
              **dict(kwargs, name=name, colocate_with=owner))
      copies = copies_of(strategy, self._state[name])
      return copies[index if len(copies) > 1 else 0]

    return tf.variable_creator_scope(create)


@contextlib.contextmanager
def _store(store: Optional[Sequence]) -> Iterator[None]:
  """Limits `get_variable` to the variables of `store`; None: no limit."""
  if store is None:
    yield
    return
  current = tf1.get_collection_ref(_tf_internals.VARIABLE_STORE_KEY)
  kept, current[:] = list(current), store
  try:
    yield
  finally:
    current[:] = kept


def copies_of(strategy, variable: tf.Variable) -> Sequence[tf.Variable]:
  """Returns the copies of a variable of any strategy in this process."""
  if isinstance(variable, _tf_internals.AggregatingVariable):
    variable = variable.get()
  return strategy.experimental_local_results(variable)


def _of_copy(strategy, gradient: Any, index: int) -> types.Gradient:
  """Returns the reduced gradient for the copy `index`."""
  gradients = strategy.experimental_local_results(gradient)
  return gradients[index if len(gradients) > 1 else 0]
