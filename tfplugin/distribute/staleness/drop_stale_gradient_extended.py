# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Asynchronous updates that are skipped when their gradients are stale."""

from __future__ import annotations

import dataclasses
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute import per_graph
from tfplugin.distribute.staleness import step_reading
from tfplugin.distribute.staleness import worker_counter
from tfplugin.ops import staleness as staleness_ops

tf1 = tf.compat.v1


@dataclasses.dataclass
class StepState:
  """One graph's step.

  Attributes:
    read_step: The global step, read before any variable of the model.
    is_fresh: Whether this step's gradients are applied. One decision serves
      every variable and optimizer.
    deferred: Updates that an optimizer has asked for and that wait for the end
      of its `apply_gradients`; None outside of it.
    waiting: The keys of the variables whose updates are deferred.
  """

  read_step: tf.Tensor
  is_fresh: tf.Tensor
  deferred: Optional[list] = None
  waiting: frozenset = frozenset()


class DropStaleGradientExtended(parameter_server_base.ParameterServerExtended):
  """Applies an optimizer's updates under one condition.

  An optimizer applies gradients in three calls: it reduces them, updates each
  variable, and updates what belongs to no variable. The updates are held back
  until the third, and then go, all together, into one `tf.cond`.
  """

  def __init__(self, container_strategy, cluster_resolver, max_staleness: int):
    """Reads the cluster; see the base class.

    Args:
      container_strategy: The strategy that this implements.
      cluster_resolver: Describes the cluster; an empty one is one process.
      max_staleness: The largest staleness that is applied.
    """
    super().__init__(container_strategy, cluster_resolver=cluster_resolver)
    self._max_staleness = max_staleness
    self._states = per_graph.PerGraph()

  def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
    reduced = super()._batch_reduce_to(reduce_op, value_destination_pairs,
                                       options)
    if not parameter_server_base.updates_variables(value_destination_pairs):
      return reduced
    graph = tf1.get_default_graph()
    if graph not in self._states:
      self._states[graph] = self._decide(reduced)
    else:
      _order_before_reads(self._states[graph].read_step, reduced)
    state = self._states[graph]
    state.deferred = []
    state.waiting = frozenset(
        parameter_server_base.unwrapped(variable).ref()
        for _, variable in value_destination_pairs)
    return reduced

  def _decide(self, gradients) -> StepState:
    step = _global_step()
    read_step = step_reading.read_step_before_forward(step, gradients)
    apply_step = step_reading.read_step_after(step, gradients)
    with self._on_worker():
      is_fresh = staleness_ops.is_fresh(
          staleness_ops.staleness_of(read_step, apply_step),
          self._max_staleness)
    return StepState(read_step, is_fresh)

  def _update(self, var, fn, args, kwargs, group):
    parameter_server_base.refuse_keras_update(
        fn,
        parameter_server_base.COUNTS_STEPS.format('DropStaleGradientStrategy'),
        '')
    update = super()._update
    state = self._states.get(tf1.get_default_graph())
    variable = parameter_server_base.unwrapped(var)
    if state is None:
      return update(var, fn, args, kwargs, group)
    if state.deferred is not None and variable.ref() in state.waiting:
      state.deferred.append((var, fn, args, kwargs))
      return tf.no_op() if group else ()
    if variable is not _global_step():
      return update(var, fn, args, kwargs, group)
    result = _tf_internals.read_after(variable, _if_fresh(
        state, lambda: update(var, fn, args, kwargs, group=False)))
    return result if group else (result,)

  def _update_non_slot(self, colocate_with, fn, args, kwargs, group):
    state = self._states.get(tf1.get_default_graph())
    finish = super()._update_non_slot
    if state is None or state.deferred is None:
      return finish(colocate_with, fn, args, kwargs, group)
    deferred, state.deferred, state.waiting = state.deferred, None, frozenset()
    update = super()._update

    def apply():
      updates = tf.nest.flatten(
          [update(*each, group=False) for each in deferred])
      with tf1.control_dependencies(updates):
        return finish(colocate_with, fn, args, kwargs, group=False)

    with self._on_worker():
      done = _if_fresh(state, apply)
    return done if group else (done,)

  def _finish_step(self, spec):
    state = self._states.get(tf1.get_default_graph())
    if state is None:
      return spec
    num_applied = worker_counter.WorkerCounter('stale_gradients/num_applied')
    num_dropped = worker_counter.WorkerCounter('stale_gradients/num_dropped')
    with self._on_worker():
      applied = tf.cast(state.is_fresh, tf.int64)
    with tf1.control_dependencies(self._ops_of_all_replicas(spec.train_op)):
      counted = tf.group(
          num_applied.variable.assign_add(applied, read_value=False),
          num_dropped.variable.assign_add(1 - applied, read_value=False))
    tf1.summary.scalar(
        'stale_gradients/dropped_fraction',
        staleness_ops.dropped_fraction(num_dropped.value(),
                                       num_applied.value()))
    return parameter_server_base.with_fields(spec, train_op=counted)


def _order_before_reads(read_step: tf.Tensor, gradients) -> None:
  """Makes a further optimizer's forward pass wait for the reading, too."""
  _tf_internals.order_before_variable_reads(
      read_step.op, tf.nest.flatten(list(gradients), expand_composites=True),
      exclude=[_global_step().handle.op])


def _if_fresh(state: StepState, make_updates) -> tf.Operation:
  """Runs the updates in one branch where the step is fresh."""

  def apply():
    with _tf_internals.private_train_ops():
      with tf1.control_dependencies(tf.nest.flatten(make_updates())):
        return tf.constant(True)

  return tf.group(tf1.cond(state.is_fresh, apply, lambda: tf.constant(False)))


def _global_step() -> tf.Variable:
  step = tf1.train.get_global_step()
  if step is None:
    raise RuntimeError(
        'DropStaleGradientStrategy measures staleness in global steps, and '
        'this graph has no global step. Call '
        '`tf.compat.v1.train.get_or_create_global_step()` in the scope of the '
        'strategy before the model is built.')
  return parameter_server_base.unwrapped(step)
