# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Schedule of exchanges, and the one exchange of a step."""

from __future__ import annotations

import functools
from collections.abc import Collection
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import branching
from tfplugin.distribute import graph_order
from tfplugin.distribute import per_graph
from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.elastic import pair_moves
from tfplugin.distribute.elastic.overlap import overlapped_exchange
from tfplugin.distribute.elastic.overlap import separate_run
from tfplugin.distribute.elastic.values import unaveraged_values
from tfplugin.distribute.updates import conditional_update
from tfplugin.distribute.updates import optimizer_interception
from tfplugin.ops import elastic
from tfplugin.ops import nonfinite
from tfplugin.ops import wire_types

tf1 = tf.compat.v1

# The effect on an update, for messages.
AUDITED = 'adds the penalty of `rho` to gradients'


class Exchange:
  """The averaged variables of one graph, and their exchange in a step.

    begin_step()               begins the step; reads whether it is due
    adjusted(...)              adjusts gradients before they are applied; any
                               number of times, for any number of optimizers
    end_step(train_ops)        ends the step: the exchange, then the count

  A step is a session step that applies gradients, however many optimizers apply
  them. A step whose `tf.cond` applies none, because gradients are being
  accumulated or are not finite, does not count and does not exchange.

  The timing is decided in this class alone. `begin_step` decides when a step is
  due, and `end_step` decides the ops that the exchange waits for.

  Attributes:
    local_step: Counts the worker's steps; an int64 scalar.
    steps_before: The worker's number of steps before this one.
    due: Whether the current step exchanges; a bool scalar.
    counters: Counters that the step's exchange advances, each with the function
      that advances it.
    has_gradients: Whether gradients have been applied in this step.
    is_built: Whether the model's step is built; later variables stay out.
    inputs: The operations of the step's features and labels.
    finite: Checks gradients and differences; None without a check.
    runs: The exchanges that a hook may run, in session runs of their own.
  """

  def __init__(self, settings: elastic_settings.ElasticSettings,
               num_worker: int, local_step: tf.Variable,
               use_locking: bool = True):
    """Begins a step without variables; `num_worker` is for the default rate."""
    self.local_step, self._use_locking = local_step, use_locking
    self._settings, self._num_worker = settings, num_worker
    if settings.moving_rate is None and not settings.follows_workers:
      notes = per_graph.current()
      notes.counted_workers = (
          notes.counted_workers or settings.num_worker or num_worker)
    self.turns = elastic_pairs.StepTurns()
    self._applied: placement.WorkerCounter | None = None
    self._pairs, self.inputs, self.is_built = {}, [], False
    self.finite = (None if settings.on_nonfinite == nonfinite.APPLY else
                   conditional_update.FiniteUpdates(
                       settings.on_nonfinite, 'elastic_average/num_nonfinite',
                       local_step.device))
    self._overlapped = (overlapped_exchange.OverlappedExchange(
        local_step.device) if settings.overlap else None)
    self.runs = [self._overlapped] if settings.overlap else []
    self._is_in_graph = not tf.executing_eagerly()
    if self._is_in_graph:
      per_graph.of(local_step.graph).add_count(
          local_step, per_graph.EXCHANGES, settings.communication_period)
    self.begin_step()

  def begin_step(self) -> None:
    """Begins a step, in the graph and branch that the step is built in."""
    self.steps_before = self.local_step.read_value()
    self.due = elastic.is_exchange_due(
        self.steps_before, self._settings.communication_period)
    self.counters, self._counts_in = [], None
    self.has_gradients = self._is_certain = self._is_marked = False
    self._moved, self._made, self._separate = set(), [], None
    self._context = branching.current_branch()

  @property
  def pairs(self) -> list[elastic_pairs.Pair]:
    """The averaged variables."""
    return list(dict.fromkeys(self._pairs.values()))

  @property
  def trained(self) -> list[tf.Variable]:
    """The copies of trained variables."""
    return [c for pair in self.pairs if pair.trainable for c in pair.copies]

  def variables(self) -> list[tf.Variable]:
    """Returns the step's counter and the variables that its exchanges write."""
    return [self.local_step, *(v for part in (*self.pairs, *self.runs)
                               for v in part.variables())]

  def add(self, *pairs: elastic_pairs.Pair) -> None:
    """Adds averaged variables to the exchanges."""
    is_int8 = self._settings.exchange_dtype == wire_types.INT8
    for pair in pairs if is_int8 else ():
      pair.keep_feedback()
    self._pairs.update({copy.ref(): pair for pair in pairs
                        for copy in pair.copies})
    for pair in pairs if self._is_in_graph else ():
      notes = per_graph.of(self.local_step.graph)
      notes.copies[pair.center.op.name] = pair.center, pair.local
      if pair.trainable:
        notes.add_figure(per_graph.DISTANCE, pair.local, pair.center)

  def end_of_model_fn(self, train_ops: Sequence,
                      state: Collection[str]) -> tf.Operation:
    """Returns the op that ends a step; logs the variables, also `state`."""
    unaveraged = unaveraged_values.of_step(self.pairs, train_ops, self.inputs)
    values = unaveraged_values.SetValues(
        unaveraged, self.local_step.device, self.runs)
    tf1.logging.info(
        'Elastic averaging: %s.',
        unaveraged_values.describe(self.pairs, [unaveraged], state))
    self._pairs = {copy: pair for copy, pair in self._pairs.items()
                   if pair not in values.pairs}
    return values.after(self.end_step(train_ops), self.due)

  def adjusted(self, grads_and_vars: types.GradsAndVars,
               rho: elastic.Rate) -> types.GradsAndVars:
    """Returns the gradients that an optimizer is to apply.

    The penalty is added, with `rho` 0 where the gradients contain it already.
    With `update_order='elastic_first'` the gradients wait for the exchange of
    their variables. A ValueError is raised for a variable without a centre, and
    for such a wait in a branch.
    """
    self.has_gradients = True
    marks = self._marks()
    result, pairs = [], []
    for gradient, copy in grads_and_vars:
      pair = self._pairs.get(copy.ref())
      if gradient is not None:
        if pair is None:
          raise ValueError(
              'Every variable that is trained must be made within the '
              f'strategy, and not be local. Received: {copy.name!r}, which has '
              'no centre. Make it there, or leave it out by `var_list`.')
        pairs.append(pair)
        gradient = elastic_pairs.penalized(gradient, copy, pair, rho)
        pair.note_gradient(gradient, self._settings.sparse_exchange)
        if marks:
          gradient = elastic_pairs.after(gradient, marks)
      result.append((gradient, copy))
    if self._settings.update_order != 'elastic_first':
      return result
    moved = self._exchange_if_due(pairs, tf.nest.flatten(
        [g for g, _ in result if g is not None], expand_composites=True))
    return [(elastic_pairs.after(g, moved), copy) for g, copy in result]

  def touched(self, adjusted: types.GradsAndVars) -> list:
    """Returns ops that note the rows that `adjusted` gradients touch.

    An exchange forgets rows before it reads them. So a note that may be beside
    the exchange, of another call, must follow the update.
    """
    return [elastic_pairs.note_touched(touched, gradient)
            for gradient, copy in adjusted if gradient is not None and
            (touched := self._pairs[copy.ref()].touched) is not None]

  def _marks(self) -> list:
    """Returns the op that marks the step, if this is a branch of the step."""
    if self._context == branching.current_branch():
      self._is_certain = True
      return []
    if self._settings.update_order == 'elastic_first':
      raise ValueError(
          "`update_order` must be 'gradient_first' where gradients are applied "
          "inside `tf.cond` or a loop. Received: 'elastic_first'. The branch "
          'may not run in a step with an exchange.')
    self._is_marked = True
    if self._applied is None:
      self._applied = placement.WorkerCounter(
          'elastic_average/applied', self.local_step.device)
    return [self._mark(1)]

  def _mark(self, value):
    return elastic_pairs.write(
        self._applied.variable, 'update', tf.constant(value, tf.int64))

  def step_of(self, global_step: tf.Variable | None) -> tf.Variable | None:
    """Returns the step for the optimizer; None if the exchange advances it."""
    if global_step is None or self._settings.count_steps == 'local':
      return global_step
    self.count(global_step, functools.partial(
        elastic_pairs.write, global_step, 'add', 1, use_locking=True))
    return None

  def count(self, step: tf.Variable, advance: Callable[[], Any]) -> None:
    """Makes the exchange advance `step`; all calls are in one branch."""
    here = branching.current_branch()
    if self.counters and here != self._counts_in:
      raise RuntimeError(
          "With `count_steps='communications'` the optimizers of a step that "
          'are given `global_step` must be in one branch, as each advances it '
          f'with the exchange. Received: `{step.name}` for optimizers in '
          "different branches of `tf.cond`. Pass `count_steps='local'`, or no "
          '`global_step` to all of them but one.')
    self._counts_in = here
    self.counters.append((step, advance))

  def end_step(self, train_ops: Sequence,
               name: str | None = None) -> tf.Operation:
    """Returns an op that ends the step: `train_ops`, exchange and count."""
    elastic_settings.refuse_accumulators()
    self._settings.check_exchanged([p.center.dtype for p in self.pairs])
    if self.has_gradients and all(pair.touched is None for pair in self.pairs):
      self._settings.warn_without_rows()
    ends = graph_order.operations_of(train_ops)
    # A program may advance the counter itself; it then counts local steps.
    unaudited = optimizer_interception.OF_RULES.unaudited
    counters = [(step, advance) for step, advance in self.counters
                if not any(unaudited(ends, step))]
    if counters:
      per_graph.current().step_counts_exchanges = True
    with tf1.control_dependencies(train_ops):
      # If only branches apply gradients: whether one has, since the last step.
      # Hooks may run the optimizers, in runs of their own.
      is_counted = (self._is_certain or not self._is_marked or
                    tf.greater(self._applied.value(), 0))
    moved = self._exchange_if_due(self.pairs, train_ops, counters, is_counted)
    if self.finite is not None:
      self.finite.summarize('elastic_average/nonfinite')
    with tf1.control_dependencies([*train_ops, *moved]):
      steps = self.steps_before + tf.cast(is_counted, tf.int64)
      return tf.group(
          elastic_pairs.write(self.local_step, 'update', steps),
          *([] if is_counted is True else [self._mark(0)]), name=name)

  def make_again(self, turns: elastic_pairs.StepTurns,
                 *more: elastic_pairs.Pair) -> None:
    """Makes a built step's exchanges again, with `turns` and `more` pairs."""
    self.turns = turns
    self.add(*more)
    self._made[-1][0].extend(more)
    for run in self.runs:
      run.run = None
    for _, begun, ends, make in self._made:
      with tf.init_scope(), tf1.control_dependencies(ends):
        _tf_internals.redirect_input(begun.op, 0, make())

  def _exchange_if_due(self, pairs, ends, counters=(), is_counted=True):
    """Builds the exchanges of `pairs`, each in one of them, after `ends`."""
    new = [pair for pair in dict.fromkeys(pairs) if pair not in self._moved]
    self._moved.update(new)
    if new or counters:
      make = functools.partial(self._new_exchange, new, counters, is_counted)
      with tf1.control_dependencies(ends):
        begun = make()
      with placement.device_override(self.local_step.device):
        begun = tf.identity(begun)
      self._made.append((new, begun, ends, make))
    return [begun for _, begun, *_ in self._made]

  def _new_exchange(self, pairs, counters, is_counted):
    due = tf.logical_and(self.due, is_counted)
    start = self.turns.join(self.steps_before, pairs, due)
    split = functools.partial(self.turns.split, pairs=pairs)
    if self._overlapped is not None:
      snapshots = [self._overlapped.snapshot_of(pair) for pair in pairs]
      return self._overlapped.end_step(
          pairs, due, start,
          lambda start: self._exchange_ops(
              snapshots, counters, split, start))
    if is_counted is True and self._settings.communication_period == 1:
      return self._exchange_ops(pairs, counters, split, start)
    is_separate = (self._settings.may_be_separate and
                   separate_run.is_useful(pairs))
    written = _written(pairs, counters)
    if not is_separate:
      with branching.updating(written):
        return tf.cond(
            due, lambda: self._exchange_ops(pairs, counters, split, start),
            lambda: tf.constant(False))
    self._separate = self._separate or separate_run.SeparateRun(
        self.local_step.device)
    return self._separate.end_step(
        due, start, lambda start: self._exchange_ops(
            pairs, counters, split, start), written, self.runs)

  def _exchange_ops(self, pairs, counters, split, start):
    """Returns the exchange, due or not, of the step with the number `start`."""

    def send(differences):
      with optimizer_interception.OF_RULES.recording(
          [*(step for step, _ in counters),
           *(v for pair in pairs for v in (*pair.copies, pair.center))]):
        moves = pair_moves.send_all(pairs, differences, self._use_locking)
        moves += tf.nest.flatten([advance() for _, advance in counters])
      return branching.done(moves)

    rate = self._settings.rate(self._num_worker)
    start, turns = split(start)
    differences = pair_moves.receive_all(
        pairs, elastic_pairs.rates_of(rate, turns), self._wire(start),
        self._settings.has_parts, turns)
    if self.finite is None or not pairs:
      return send(differences)
    is_finite = self.finite.accepted(
        [d for each in differences for d in each.of_copies],
        [pair.center.name if pair.is_snapshot else copy.name
         for pair in pairs for copy in pair.copies], start)
    with branching.updating(_written(pairs, counters)):
      return tf.cond(is_finite, lambda: send(differences),
                     lambda: self._skip(pairs, differences))

  def _wire(self, steps_before) -> pair_moves.Wire | None:
    """Returns the type on the network, for the exchange of the next step."""
    dtype = self._settings.exchange_dtype
    if dtype != wire_types.INT8:
      return dtype and pair_moves.Wire(dtype)
    return pair_moves.Wire(dtype, wire_types.dither_of(
        steps_before // self._settings.communication_period))

  def _skip(self, pairs, differences) -> tf.Tensor:
    """Counts a skipped exchange."""
    return branching.done([
        *self.finite.count(),
        *(op for pair, each in zip(pairs, differences)
          for op in pair_moves.move_nothing(pair, each))])


def _written(pairs, counters) -> list[tf.Variable]:
  return [*(step for step, _ in counters),
          *(v for pair in pairs for v in pair.variables())]
