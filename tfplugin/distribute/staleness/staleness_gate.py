# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gate that reads the step around a train step: is a gradient stale?

`conditional_update.apply_gradients_if` carries the decision out.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import graph_order
from tfplugin.distribute import per_graph
from tfplugin.distribute import refusals
from tfplugin.distribute.staleness import step_order
from tfplugin.distribute.updates import conditional_update
from tfplugin.distribute.updates import optimizer_interception
from tfplugin.ops import nonfinite
from tfplugin.ops import staleness as staleness_ops

tf1 = tf.compat.v1

# Assignments whose value is a change.
_ADDING = ('assign_add', 'assign_sub')
# The change of an update, for messages.
AUDITED = 'drops updates that are stale'


def refuse_synchronous(optimizer: tf1.train.Optimizer) -> None:
  """Raises RuntimeError if a SyncReplicasOptimizer is inside `optimizer`.

  Raises it also while one applies `optimizer`.
  """
  kind = tf1.train.SyncReplicasOptimizer
  if optimizer_interception.holds(optimizer, kind):
    received = f'one inside of {type(optimizer).__name__}'
    if isinstance(optimizer, kind):
      received = f'{optimizer.get_name()!r}'
  elif not tf.executing_eagerly() and _tf_internals.is_applied_by(kind):
    received = f'one around {type(optimizer).__name__}'
  else:
    return
  refusals.refuse_synchronous(
      'with drop stale', 'it drops stale gradients itself, and waits for '
      'updates that drop stale may drop', received,
      'Leave out one of the two')


class Decision(NamedTuple):
  """The decision whether the gradients of one step are applied.

  `reading` is the global step when the step began, and `staleness` an `int64`
  scalar. `accepted` and `fresh` are bool scalars: whether the gradients are
  applied, and whether they are not stale. They differ only where nonfinite
  gradients are dropped, too.
  """

  reading: tf.Tensor
  staleness: tf.Tensor
  accepted: tf.Tensor
  fresh: tf.Tensor


class StalenessGate:
  """Gate that decides for each `decide` anew whether gradients are applied.

  `decision` is the last one, None before it.
  """

  def __init__(self, max_staleness: staleness_ops.Bound,
               on_nonfinite: str = nonfinite.APPLY):
    """Stores the largest staleness that is applied, and the policy for NaNs."""
    self._max_staleness = max_staleness
    self._on_nonfinite = nonfinite.check_policy(on_nonfinite)
    self.decision: Decision | None = None

  def decide(self, step: tf.Variable, gradients: Sequence[types.Gradient],
             reading: tf.Tensor | None = None,
             names: Sequence[str] = ()) -> Decision:
    """Returns and keeps a decision about the gradients of one step, not None.

    Staleness is counted in `step`. `reading` is the step when the training step
    began. None reads it before the model's work, in a graph, and does not count
    this worker's own writes of the step. `names`, of the gradients' variables,
    are for the error. Raises ValueError if there is no gradient.
    """
    if not gradients:
      raise ValueError('`grads_and_vars` must hold a gradient. No gradients '
                       'provided for any variable. Received: none')
    orders = reading is None
    if orders:
      reading = step_order.read_step_before_forward(step, gradients)
    second = step_order.read_step_after(step, gradients)
    if orders:
      step_order.keep_own_writes_out(reading, second)
    staleness = staleness_ops.staleness_of(reading, second)
    if orders and not tf.executing_eagerly():
      for advance in step_order.own_updates_between(step, reading, second):
        staleness -= tf.cast(advance, tf.int64)
    if not tf.executing_eagerly():
      per_graph.of(staleness.graph).add_figure(
          per_graph.STALENESS, staleness)
    fresh = staleness_ops.is_fresh(staleness, self._max_staleness)
    # Another thread may replace `self.decision`.
    decision = self._judged(
        Decision(reading, staleness, fresh, fresh), gradients, names)
    self.decision = decision
    return decision

  @property
  def accepted_here(self) -> tf.Tensor | None:
    """The decision that the current branch keeps to; None: it will be made."""
    return None

  def note_update(self, update: tf.Operation | None,
                  step: tf.Variable) -> None:
    """Notes that `update`, decided last, advances `step`; None is eager."""
    if update is not None and (
        tf.distribute.get_strategy().num_replicas_in_sync == 1):
      step_order.note_own_update(update, step, self.decision.accepted)

  def _judged(self, decision: Decision, gradients: Sequence[types.Gradient],
              names: Sequence[str]) -> Decision:
    """Returns `decision`, with the check for finite gradients if requested."""
    if self._on_nonfinite == nonfinite.APPLY:
      return decision
    return decision._replace(accepted=tf.logical_and(
        decision.accepted, conditional_update.accepted(
            self._on_nonfinite, gradients, names, decision.reading)))


class OneDecision(StalenessGate):
  """Gate that decides once in a graph, for all optimizers of the step.

  The step count by the first optimizer does not make the second one stale.
  """

  def decide(self, step: tf.Variable, gradients: Sequence[types.Gradient],
             reading: tf.Tensor | None = None,
             names: Sequence[str] = ()) -> Decision:
    """Returns the first decision, checked for these gradients."""
    if self.accepted_here is None:
      return super().decide(step, gradients, reading, names)
    step_order.order_before_forward(self.decision.reading, gradients)
    return self._judged(self.decision, gradients, names)

  @property
  def accepted_here(self) -> tf.Tensor | None:
    """See base class."""
    if self.decision is None or not _tf_internals.is_usable_here(
        self.decision.accepted):
      return None
    return self.decision.accepted


def drop_writes_of_step(accepted: tf.Tensor, step: tf.Variable,
                        writes: Iterable[tf.Operation], caller: str) -> None:
  """Makes `writes` of `step` add 0, or nothing new, where `accepted` is false.

  A model makes such writes apart from its optimizers: a canned estimator with
  two of them, or a program without `global_step` in `minimize`:

    with tf.control_dependencies([train_op]):
      global_step.assign_add(1)

  A warning by `caller` names each write that cannot be changed: in a branch,
  before the decision, or by another op than an assignment.
  """
  before = graph_order.upstream([accepted.op])
  for op in writes:
    method = _tf_internals.method_of_write(op)
    if method in ('assign', *_ADDING) and op not in before and (
        _tf_internals.branch_of(op) == _tf_internals.branch_of(accepted.op)):
      _replace_value(op, accepted, step, method in _ADDING)
    else:
      tf1.logging.warning(
          '%s cannot keep %s (%s) from writing `%s` in a dropped step: the op '
          'is in a branch, or before the gradients. Pass `global_step` to '
          '`minimize` or `apply_gradients`, or write it after the update.',
          caller, op.name, op.type, step.name)


def _replace_value(op: tf.Operation, accepted: tf.Tensor, step: tf.Variable,
                   is_added: bool) -> None:
  """Makes an assignment write no change where `accepted` is false."""
  value = op.inputs[1]
  with tf.control_dependencies(None), _tf_internals.colocate_with(step):
    with tf.control_dependencies([accepted, *op.control_inputs]):
      unchanged = tf.zeros_like(value) if is_added else step.read_value()
    _tf_internals.redirect_input(
        op, 1, tf.where(accepted, value, unchanged))
