# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Asynchronous training that drops stale gradients, as a strategy."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import branching
from tfplugin.distribute import graph_order
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute import per_graph
from tfplugin.distribute import refusals
from tfplugin.distribute.staleness import staleness_counters
from tfplugin.distribute.staleness import staleness_gate
from tfplugin.distribute.updates import conditional_update
from tfplugin.distribute.updates import optimizer_interception
from tfplugin.ops import nonfinite
from tfplugin.ops import staleness as staleness_ops

tf1 = tf.compat.v1


class DropStaleGradientStrategy(parameter_server_base.ParameterServerStrategy):
  """Parameter-server training in which stale gradients are dropped.

  Variables, slots and checkpoints are as with
  `tf.compat.v1.distribute.experimental.ParameterServerStrategy` and without a
  strategy: nothing is added to a checkpoint. In each step

      staleness = global_step when applying - global_step when the step began

  If it exceeds `staleness`, the optimizer does not change the variables, its
  slots or global_step. The step is read before the first variable is. One
  decision holds for all variables and all optimizers of the step. In a dropped
  step the model's own assignments, such as batch norm's moving averages, still
  happen; only global_step does not advance. The worker's own advance of
  global_step is not staleness. Accumulated gradients are as stale as the step
  that applies them.

  Every worker counts its steps in the local int64 variables
  `stale_gradients/num_applied` and `stale_gradients/num_dropped`. The chief
  writes the summary `stale_gradients/dropped_fraction`, in [0, 1].

  In a cluster, also pass `RunConfig(experimental_max_worker_delay_secs=0)`. By
  default TensorFlow delays worker k by 5 s * (k + 1).

  Checking and applying are not one atomic action, so two workers may pass the
  check together. An applied gradient can then exceed the bound by the number of
  updates that happen meanwhile, at most one per other worker.

  Args:
    cluster_resolver: A `tf.distribute.cluster_resolver.ClusterResolver`; None
      reads `TF_CONFIG`. Without a cluster nothing is ever stale.
    staleness: The largest staleness that is applied, in global steps.
    on_nonfinite: The policy for gradients with a NaN or an infinity.
      `'apply'` applies them, as without the strategy. `'drop'` drops them, and
      counts them separately, in `stale_gradients/num_nonfinite`, with the
      summary `stale_gradients/nonfinite`. `'raise'` raises an error that names
      the worker, the step and the variables.

  Raises:
    TypeError: `staleness` is not an integer.
    ValueError: `staleness` is negative, `on_nonfinite` another word, or the
      cluster has no `ps`.

  Example:
  >>> import tfplugin.distribute
  >>> strategy = tfplugin.distribute.DropStaleGradientStrategy(staleness=4)
  >>> strategy.staleness
  4

  Differences from tf.contrib: the optimizer there read the step after the
  forward pass had begun, and so treated some stale gradients as fresh.
  """

  def __init__(
      self,
      cluster_resolver: (
          tf.distribute.cluster_resolver.ClusterResolver | None) = None,
      *,
      staleness: int,
      on_nonfinite: str = nonfinite.APPLY):
    self._staleness = staleness_ops.check_max_staleness(staleness)
    super().__init__(
        DropStaleGradientExtended(
            self, parameter_server_base.resolver_or_default(cluster_resolver),
            self._staleness, nonfinite.check_policy(on_nonfinite)))

  @property
  def staleness(self) -> int:
    """The largest staleness that is applied."""
    return self._staleness


class _Counters(staleness_counters.WorkerCounters):
  """The numbers of applied and of dropped steps of this worker."""

  def count_dropped(self, fresh: tf.Tensor, is_first: bool) -> list:
    """Returns the ops that count a drop; the first optimizer counts stale."""
    if self.num_nonfinite is None:
      return [self.num_dropped.increment()] if is_first else []
    stale = [self.num_dropped.increment(tf.logical_not(fresh))]
    return [*stale * is_first, self.num_nonfinite.increment(fresh)]


@dataclasses.dataclass
class _Gates:
  """The gates of one graph.

  `by_replica` has one gate for all optimizers of a replica. An optimizer is
  applied behind a gate inside `applying`. `counters` is None before the
  first update. `own_counts` has, for each count by the model itself, the
  op with its condition, the decision, and True, which waits as the count does.
  """

  by_replica: dict[int, staleness_gate.OneDecision] = dataclasses.field(
      default_factory=dict)
  applying: per_graph.Inside = dataclasses.field(
      default_factory=per_graph.Inside)
  counts_nonfinite: bool = False
  counters: _Counters | None = None
  own_counts: list[tuple[tf.Operation, tf.Tensor, tf.Tensor]] = (
      dataclasses.field(default_factory=list))

  def count(self) -> None:
    """Makes the counters of the graph."""
    self.counters = self.counters or _Counters(
        'stale_gradients', counts_nonfinite=self.counts_nonfinite)

  def accepted_of_count(self) -> tf.Tensor | None:
    """Returns the decision for a count by the model itself; None before it."""
    decisions = [gate.accepted_here for gate in self.by_replica.values()]
    if not decisions or any(decision is None for decision in decisions):
      return None
    always, accepted = tf.constant(True), tf.reduce_all(tf.stack(decisions))
    result = tf.identity(accepted)
    if branching.current_branch() == (accepted.graph, None) and (
        not accepted.graph.building_function):
      self.own_counts.append((result.op, accepted, always))
    return result

  def free_own_counts(self, train_ops: Sequence) -> None:
    """Makes these counts unconditional if `train_ops` apply no optimizer.

    Then hooks run the optimizers. A run that only counts draws no batch.
    """
    for op, _, always in self.own_counts:
      _tf_internals.redirect_input(op, 0, always)
    run = graph_order.upstream(train_ops)
    if any(gate.accepted_here.op in run for gate in self.by_replica.values()):
      for op, accepted, _ in self.own_counts:
        _tf_internals.redirect_input(op, 0, accepted)


class DropStaleGradientExtended(parameter_server_base.ParameterServerExtended):
  """Extended class with each optimizer of a replica behind the replica's gate.

  An update is made where all replicas agree. The model's own updates of the
  global step call `_update`, and wait for the same decision.
  """

  def __init__(self, container_strategy, cluster_resolver, max_staleness: int,
               on_nonfinite: str):
    """Reads the cluster; an empty one is a single process."""
    super().__init__(container_strategy, cluster_resolver=cluster_resolver)
    self._max_staleness = max_staleness
    self._on_nonfinite = on_nonfinite
    self._gates_of_graph = per_graph.PerGraph()

  def _gates(self) -> _Gates:
    return self._gates_of_graph.for_current_graph(lambda: _Gates(
        counts_nonfinite=self._on_nonfinite == nonfinite.DROP))

  def _call_for_each_replica(self, fn, args, kwargs):
    gates = self._gates()
    if gates.applying:  # The optimizer applies another one.
      return super()._call_for_each_replica(fn, args, kwargs)

    def gated(*args, **kwargs):
      replica = tf.get_static_value(
          tf.distribute.get_replica_context().replica_id_in_sync_group)
      gate = gates.by_replica.setdefault(
          int(replica), staleness_gate.OneDecision(
              self._max_staleness, self._on_nonfinite))
      with optimizer_interception.Interception(
          lambda optimizer: _Gated(optimizer, gate, gates), _Gated,
          is_whole=True).active():
        return fn(*args, **kwargs)

    return super()._call_for_each_replica(gated, args, kwargs)

  def _update(self, var, fn, args, kwargs, group):
    refusals.refuse_keras_step_count(fn, self._container_strategy())
    update = super()._update
    gates = self._gates()
    variable = parameter_server_base.unwrapped(var)
    if gates.applying or variable is not parameter_server_base.global_step():
      return update(var, fn, args, kwargs, group)
    # The model itself advances the step.
    with self._on_worker():
      accepted = gates.accepted_of_count()
    if accepted is None:
      return update(var, fn, args, kwargs, group)
    result = _tf_internals.read_after(variable, _update_if(
        accepted, lambda: update(var, fn, args, kwargs, group=False)))
    return result if group else (result,)

  def _is_of_rule(self, fn):
    return bool(self._gates().applying) and super()._is_of_rule(fn)

  def _step_is_built(self, result):
    super()._step_is_built(result)
    self.refuse_unaudited(
        result, tf1.trainable_variables(), staleness_gate.AUDITED)

  def _finish_step(self, spec):
    gates, counters = self._gates(), self._gates().counters
    if gates.own_counts:
      gates.free_own_counts([
          part for leaf in tf.nest.flatten(spec.train_op)
          for part in self._local_results(leaf)])
    if counters is not None:
      with self._on_worker():
        counters.summarize('stale_gradients/dropped_fraction',
                           'stale_gradients/nonfinite')
    return spec


class _Gated:
  """An optimizer behind the gate of its replica."""

  def __init__(self, optimizer: tf1.train.Optimizer,
               gate: staleness_gate.OneDecision, gates: _Gates):
    staleness_gate.refuse_synchronous(optimizer)
    self._optimizer = optimizer
    self._gate = gate
    self._gates = gates

  def apply_gradients(self, grads_and_vars: types.GradsAndVars,
                      global_step: tf.Variable | None = None,
                      name: str | None = None, **kwargs):
    """Applies the gradients unless they are stale."""
    grads_and_vars = list(grads_and_vars)
    step = parameter_server_base.global_step()
    if step is None:
      raise RuntimeError(
          'DropStaleGradientStrategy measures staleness in global steps, and '
          'this graph has no global step. Call '
          '`tf.compat.v1.train.get_or_create_global_step()` in the scope of '
          'the strategy before the model is built.')
    is_first = self._gate.accepted_here is None
    if is_first:  # One count for each decision.
      kwargs.update(
          prepare=self._gates.count,
          on_apply=lambda: [self._gates.counters.num_applied.increment()])
    decision = self._gate.decide(
        step, [g for g, _ in grads_and_vars if g is not None],
        names=[v.name for g, v in grads_and_vars if g is not None])
    kwargs.update(
        on_skip=lambda fresh: self._gates.counters.count_dropped(
            fresh, is_first), skip_args=[decision.fresh])
    # All writes of the optimizer are in the branch.
    audit = tf.distribute.get_strategy().extended.current_audit()
    with self._gates.applying, audit.recording(tf1.trainable_variables()):
      return conditional_update.apply_gradients_if(
          decision.accepted, self._optimizer, grads_and_vars, global_step,
          name, **kwargs)


def _update_if(accepted: tf.Tensor, make_update) -> tf.Operation:
  return tf.group(tf1.cond(
      accepted, lambda: branching.done(tf.nest.flatten(make_update())),
      lambda: tf.constant(False)))
