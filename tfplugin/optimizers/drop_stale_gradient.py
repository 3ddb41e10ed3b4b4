# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wrapper that drops gradients that are too many global steps late."""

from __future__ import annotations

import functools
import threading

import tensorflow as tf

from tfplugin import types
from tfplugin.distribute.staleness import staleness_counters
from tfplugin.distribute.staleness import staleness_gate
from tfplugin.distribute.staleness import step_order
from tfplugin.distribute.updates import conditional_update
from tfplugin.distribute.updates import update_lock
from tfplugin.ops import nonfinite
from tfplugin.ops import staleness as staleness_ops
from tfplugin.optimizers import wrapper

tf1 = tf.compat.v1

# Dashboards use this tag.
SUMMARY_TAG = 'Gradient staleness percentage'
FRACTION_TAG = 'Gradients dropped fraction'
NONFINITE_TAG = 'Gradients not finite'


class DropStaleGradientOptimizer(wrapper.OptimizerWrapper):
  """Wrapper that drops gradients more than `staleness` steps late.

  For asynchronous training on parameter servers, where a slow worker's
  gradients belong to outdated weights. Dropping them bounds the error of an
  update and costs the work of that step. Where every sample counts, choose
  `SyncReplicasOptimizer` instead.

    staleness = global_step when applying - global_step when the step began
    staleness <= bound:  the wrapped optimizer applies, global_step advances
    staleness >  bound:  the optimizer changes nothing, only counters advance

  Each worker, in each step:
    1. reads global_step before its forward pass reads any variable, data or
       random number;
    2. computes the loss and the gradients;
    3. reads global_step again once every gradient is there, and decides.

  The model's own assignments also happen in a dropped step. One of them is a
  write of global_step beside this optimizer, as in canned estimators with two
  optimizers. `tfplugin.estimator.drop_stale_gradients` drops that one.

  A worker's own step is not staleness. Another write of global_step in the
  train op, such as `global_step.assign(global_step + 1)`, comes before 1 or
  after 3. Group it with the update: a write that is fetched beside the train op
  counts as another worker's.

  The guarantee: at step 3 the gradient is at most `staleness` updates late.
  Without a lock other workers may apply between the decision and the update: of
  p workers at most p - 1 further updates. With `use_locking=True` decision and
  update are one atomic action. A mutex beside global_step is held from the
  second reading to the end of the update. The bound is then exact among the
  workers that lock, and their updates are serialised.

  Several instances in one graph decide separately. One does not count the
  other's step if both updates are in one train op. It does in two cases: with
  `use_locking=True` where neither update waits for the other, and where one of
  two updates on one batch is in a branch. Then give a bound above 0, or use
  `tfplugin.estimator.drop_stale_gradients`, which decides once for all.

  Accumulated gradients, applied in a branch of `tf.cond`, are as late as the
  step that applies them: reading 1 precedes that step's forward pass. The
  earlier gradients of the sum are not measured.

  Variables created:
    stale_counter: float32, [], global, beside global_step. The drops of all
      workers. A second instance in the same graph calls it
      <name>_1/stale_counter. An Estimator does not restore a checkpoint that
      lacks it; `tfplugin.estimator.drop_stale_gradients` brings a Saver that
      does.
    <name>/num_dropped, <name>/num_applied: int64, [], local, on the worker.
      Exact, this worker's alone, not checkpointed.
    <name>/num_nonfinite: likewise, with `on_nonfinite='drop'`.

  Supported: dense and sparse gradients, partitioned variables, any v1 optimizer
  inside; graphs, eager execution and tf.function; replicas of tf.distribute,
  which decide together. `apply_gradients` accepts gradients of `tf.gradients`.

  Differences from tf.contrib:
    * The first reading precedes the forward pass. contrib ordered it before the
      backward pass at best. If one worker's read was delayed while another
      applied 5 updates, contrib measured staleness 0, and this class measures
      5.
    * `global_step=None` measures with `tf.compat.v1.train.get_global_step()`
      and, as with the bare optimizer, does not advance it. contrib crashed.
    * Variables of the wrapped optimizer keep their names (`beta1_power`, not
      `cond/beta1_power`), so that checkpoints work in both directions.
    * The summary `Gradient staleness percentage` is stale_counter /
      (global_step + 1) as in contrib, and no percentage: ten of ten dropped
      show 10.0. `Gradients dropped fraction` is dropped / (dropped + applied).
    * Several instances in one graph work, and so does `apply_gradients` alone.
      `variables()` includes the wrapped optimizer's.

  Example:
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> with tf.Graph().as_default():
    ...   step = tf.compat.v1.train.get_or_create_global_step()
    ...   w = tf.compat.v1.get_variable('w', initializer=3.0)
    ...   optimizer = tfplugin.DropStaleGradientOptimizer(
    ...       tf.compat.v1.train.GradientDescentOptimizer(0.5), staleness=8)
    ...   train_op = optimizer.minimize(w * w, global_step=step)
    ...   with tf.compat.v1.Session() as session:
    ...     session.run(tf.compat.v1.global_variables_initializer())
    ...     bool(session.run([train_op, optimizer.accepted])[1])
    True

  References:
    Chen, Pan, Monga, Bengio and Jozefowicz. Revisiting distributed synchronous
    SGD. 2016. https://arxiv.org/abs/1604.00981 (on dropping late work)
  """

  def __init__(self,
               opt: types.Optimizer,
               staleness: staleness_ops.Bound,
               use_locking: bool = False,
               name: str = 'DropStaleGradient',
               *,
               on_nonfinite: str = nonfinite.APPLY):
    """Wraps `opt`.

    Args:
      opt: The v1 optimizer that computes and applies the updates.
      staleness: The largest staleness that is still applied, in global steps: a
        number, or a scalar tensor of integers. 0 accepts a gradient only if no
        other worker has applied one meanwhile.
      use_locking: Whether a worker holds a mutex while it decides and applies,
        in a plain graph. Elsewhere one thread applies and no lock is needed.
      name: Names ops and the local counters.
      on_nonfinite: The policy for gradients with a NaN or an infinity.
        `'apply'` is as without the wrapper. `'drop'` drops them like stale
        ones, but counts them separately, in the summary `Gradients not finite`.
        `'raise'` is an error that names the worker, the step and the variables.

    Raises:
      TypeError: `opt` is no v1 optimizer or `staleness` no integer.
      ValueError: `staleness` is negative, or `on_nonfinite` another word.
      RuntimeError: `opt` is a SyncReplicasOptimizer, or has one inside.
    """
    super().__init__(opt, use_locking, name)
    staleness_gate.refuse_synchronous(opt)
    self._gate = staleness_gate.StalenessGate(
        staleness_ops.check_max_staleness(staleness), on_nonfinite)
    self._counters = staleness_counters.StalenessCounters(
        name, on_nonfinite == nonfinite.DROP)
    self._eager_readings = {}  # One for each thread.

  @property
  def accepted(self) -> tf.Tensor | None:
    """Decision about the last built update: a bool scalar; None before one.

    Fetch it together with the train op to learn whether this worker's gradient
    was used. Under a strategy it is the replica's own vote; the gradients are
    applied if all replicas agree.
    """
    return self._gate.decision and self._gate.decision.accepted

  @property
  def staleness(self) -> tf.Tensor | None:
    """The staleness of the last built update: an `int64` scalar, else None."""
    return self._gate.decision and self._gate.decision.staleness

  @property
  def num_dropped(self) -> tf.Tensor:
    """The number of gradients that this worker dropped: an `int64` scalar."""
    return self._counters.for_current_graph().num_dropped.value()

  @property
  def num_applied(self) -> tf.Tensor:
    """The number of gradients that this worker applied: an `int64` scalar."""
    return self._counters.for_current_graph().num_applied.value()

  @property
  def num_nonfinite(self) -> tf.Tensor | None:
    """The number of gradients that this worker dropped as not finite.

    An `int64` scalar; None unless `on_nonfinite` is `'drop'`.
    """
    counter = self._counters.for_current_graph().num_nonfinite
    return counter and counter.value()

  @property
  def stale_counter(self) -> tf.Variable:
    """The dropped gradients of all workers: a `float32` scalar variable."""
    return self._counters.for_current_graph().stale_counter

  def variables(self) -> list[tf.Variable]:
    """Returns the wrapped optimizer's variables and the counters."""
    return super().variables() + self._counters.variables()

  def minimize(self, loss: types.LossLike, *args, **kwargs):
    """Computes and applies gradients; see the base class."""
    try:
      return super().minimize(loss, *args, **kwargs)
    finally:
      # This reading belongs to this step, and to no later one.
      self._eager_readings.pop(threading.get_ident(), None)

  def compute_gradients(self, loss: types.LossLike, *args,
                        **kwargs) -> types.GradsAndVars:
    """Computes gradients with the wrapped optimizer; see the base class.

    In eager execution the step begins here. In a graph `apply_gradients` puts
    the reading before the forward pass.
    """
    if tf.executing_eagerly():
      step = wrapper.minimized_step.get()
      step = tf1.train.get_global_step() if step is None else step
      self._eager_readings[threading.get_ident()] = (
          None if step is None else step_order.read_step(step))
    return super().compute_gradients(loss, *args, **kwargs)

  def apply_gradients(self,
                      grads_and_vars: types.GradsAndVars,
                      global_step: tf.Variable | None = None,
                      name: str | None = None,
                      skip_gradients_aggregation: bool = False):
    """Applies the gradients unless they are stale.

    Args:
      grads_and_vars: Gradients of `compute_gradients` or `tf.gradients`.
      global_step: The step that the staleness is counted in; an applied update
        advances it. None: counted in the graph's global step, which is then not
        advanced.
      name: Of the returned op.
      skip_gradients_aggregation: The gradients are reduced already.

    Returns:
      An op that applies or drops; None in eager execution.

    Raises:
      TypeError: `global_step` is not a variable.
      ValueError: There is no gradient, or no global step.
      RuntimeError: Eager execution without a reading by `compute_gradients`,
        or a SyncReplicasOptimizer around this optimizer.
    """
    staleness_gate.refuse_synchronous(self)
    grads_and_vars = list(grads_and_vars)
    step = _resolve_step(global_step)
    extra = ({'skip_gradients_aggregation': True}
             if skip_gradients_aggregation else {})

    here = '' if tf.executing_eagerly() else tf.no_op().device

    def apply_fresh(grads_and_vars, on_apply=self._counters.count_applied,
                    on_skip=self._counters.count_dropped):
      decision = self._decide(step, grads_and_vars)
      return conditional_update.apply_gradients_if(
          decision.accepted, self._optimizer, grads_and_vars, global_step,
          name or self.get_name(),
          prepare=functools.partial(self._counters.create, step, here),
          on_apply=on_apply, on_skip=on_skip, skip_args=[decision.fresh],
          **extra)

    # Before this one takes the lock, for which the first one may wait.
    earlier = self._gate.accepted_here
    with tf.control_dependencies([] if earlier is None else [earlier]):
      if self._use_locking and update_lock.is_possible():
        update = self._apply_locked(step, grads_and_vars, functools.partial(
            apply_fresh, on_apply=tuple, on_skip=self._counters.count_stale))
      else:
        update = apply_fresh(grads_and_vars)
    if global_step is not None:
      self._gate.note_update(update, step)
    self._summarize(step)
    return update

  def _apply_locked(self, step: tf.Variable, grads_and_vars: list,
                    apply_fresh: update_lock.UpdateFn) -> tf.Operation:
    """Applies under the lock, then updates the worker's own counters."""
    update = update_lock.run_locked(
        step, grads_and_vars, apply_fresh, f'{self.get_name()}/mutex')
    decision = self._gate.decision
    with tf.control_dependencies([update]):
      return tf.group(update, *self._counters.count_own(
          decision.accepted, decision.fresh))

  def _decide(self, step: tf.Variable,
              grads_and_vars: list) -> staleness_gate.Decision:
    """Returns the decision; in eager execution by the reading of the thread."""
    reading = self._eager_readings.get(
        threading.get_ident()) if tf.executing_eagerly() else None
    if reading is None and tf.executing_eagerly():
      raise RuntimeError(
          f'{type(self).__name__}.apply_gradients() found no reading of the '
          'step in eager execution: call `minimize(loss, global_step)`, or '
          'create the global step and call compute_gradients() first.')
    gradients = [g for g, _ in grads_and_vars if g is not None]
    return self._gate.decide(step, gradients, reading, [
        v.name for g, v in grads_and_vars if g is not None])

  def _summarize(self, step: tf.Variable) -> None:
    """Adds the summaries to a plain graph."""
    if (tf.executing_eagerly() or tf.inside_function() or
        not self._counters.exist_here()):
      return
    counters = self._counters.for_current_graph()
    with tf.control_dependencies(None):
      ratio = counters.stale_counter.read_value() / (
          tf.cast(step.read_value(), tf.float32) + 1.0)
      tf1.summary.scalar(SUMMARY_TAG, ratio)
      counters.summarize(FRACTION_TAG, NONFINITE_TAG)


class BehindGate(DropStaleGradientOptimizer):
  """Wrapper whose `gate` may decide for other optimizers, too."""

  def __init__(self, opt: tf1.train.Optimizer,
               gate: staleness_gate.StalenessGate, staleness: int,
               use_locking: bool, on_nonfinite: str):
    """Wraps `opt`; see the base class."""
    super().__init__(opt, staleness, use_locking, on_nonfinite=on_nonfinite)
    self._gate = gate


def _resolve_step(global_step: tf.Variable | None) -> tf.Variable:
  """Returns the step that staleness is counted in."""
  step = tf1.train.get_global_step() if global_step is None else global_step
  if step is not None and not isinstance(step, tf.Variable):
    raise TypeError(
        '`global_step` must be a variable, which an update advances. Received: '
        f'{step!r}. Pass `tf.compat.v1.train.get_or_create_global_step()`.')
  if step is None:
    raise ValueError(
        '`global_step` must be a variable: staleness is counted in global '
        'steps and this graph has none. Received: None. Pass '
        '`tf.compat.v1.train.get_or_create_global_step()`.')
  return step
