# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exchange in a separate session run, concurrent with the steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Callable

import tensorflow as tf

from tfplugin.distribute import branching
from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic.overlap import separate_run
from tfplugin.distribute.updates import optimizer_interception

tf1 = tf.compat.v1

_SCOPE = 'elastic_overlap'
_UNSERVED = (
    '`overlap` must be False in a session without the hook that runs the '
    'exchanges. Received: True. Pass the hook of '
    '`optimizer.make_session_run_hook`, or the `training_hooks` of the '
    'EstimatorSpec, to a `tf.compat.v1.train.MonitoredSession`.')


class OverlappedExchange(separate_run.SeparateRun):
  """The exchanges of one worker, at most one in flight.

    a step that is due ends:   snapshot = copy;   number of the step -> `begun`
    `run`, in a thread:        number <- `begun`
                               d = moving_rate * (snapshot - center)
                               center += d;   snapshot = d;   `done`
    the first step that ends after that, and at the latest the next one that is
    due, which waits for it:   `done`;   copy -= d

  Only steps write a copy, one after the other. Between the two halves an
  exchange uses the snapshot and the centre.
  """

  is_awaited = False

  def __init__(self, device: str):
    """Makes the queues and a flag on the worker's `device`."""
    super().__init__(device, _SCOPE)
    self._snapshots = {}
    self._in_flight = placement.worker_variable(
        lambda: False, f'{_SCOPE}/in_flight', device)
    with tf.init_scope():
      self.serve = tf.group(self.serve, self._set_in_flight(False))

  def _set_in_flight(self, value):
    return elastic_pairs.write(self._in_flight, 'update', tf.constant(value))

  def snapshot_of(self, pair: elastic_pairs.Pair) -> elastic_pairs.Pair:
    """Returns `pair` with a snapshot in the place of its copy."""
    if pair not in self._snapshots:
      name = pair.local.name.split(':')[0]

      def create(kind):
        return placement.worker_variable(
            lambda: tf.zeros(pair.local.shape, pair.local.dtype.base_dtype),
            f'{_SCOPE}/{kind}/{name}', pair.local.device,
            branching.is_reference(pair.local))

      self._snapshots[pair] = dataclasses.replace(
          pair, copies=(create('snapshot'),), is_snapshot=True,
          local_center=(None if pair.local_center is None else
                        create('center')))
    return self._snapshots[pair]

  def variables(self) -> list[tf.Variable]:
    """Returns the worker's variables that this object has made."""
    return [self._in_flight, *(
        v for pair in self._snapshots.values()
        for v in (pair.local, pair.local_center) if v is not None)]

  def end_step(self, pairs: Sequence[elastic_pairs.Pair], due: tf.Tensor,
               step: tf.Tensor,
               make_exchange: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
    """Ends a step: takes a finished exchange, begins the next one if `due`.

    `make_exchange` builds the exchange of the snapshots, for the step number
    that it gets. `step` counts the steps before this one. Returns a tensor to
    depend on. Raises a RuntimeError if a step was ended before, and a
    ValueError if the exchange would run the step itself.
    """
    if self.run is not None:
      raise RuntimeError(
          '`overlap` must be False where a strategy runs several training '
          'steps in one graph, whose exchanges would replace each other. '
          'Received: True. Make one call, or a graph for each.')
    snapshots = [self.snapshot_of(pair) for pair in pairs]
    written = [v for pair in (*pairs, *snapshots) for v in pair.variables()]
    self.build(make_exchange, written)
    if self.run is None:
      raise ValueError(
          '`overlap` must be False where `global_step` is advanced by a value '
          'that the step computes: an exchange in a separate session run would '
          "compute the step again. Received: True. Pass count_steps='local', "
          'or advance it by a constant.')
    with placement.device_override(self._device):
      in_flight = self._in_flight.read_value()
      has_ended = tf.logical_and(
          in_flight, tf.logical_or(due, self._done.size() > 0))
    has_come = branching.cond(has_ended, self._done.dequeue)
    taken = branching.cond(
        has_come, lambda: self._take(pairs, snapshots), updated=written)
    with tf1.control_dependencies([taken]):
      # A failed exchange ends the exchanges; its thread reports the error.
      begins = tf.logical_and(
          due, tf.logical_or(has_come, tf.logical_not(in_flight)))
      return branching.cond(
          begins, lambda: self._begin(pairs, snapshots, step), updated=written)

  def _take(self, pairs, snapshots):
    with optimizer_interception.OF_RULES.recording(
        [pair.local for pair in pairs]):
      moves = [elastic_pairs.write(
          pair.local, 'sub', elastic_pairs.read(snapshot.local))
               for pair, snapshot in zip(pairs, snapshots)]
    moves += [elastic_pairs.write(pair.local_center, 'update',
                                  elastic_pairs.read(snapshot.local_center))
              for pair, snapshot in zip(pairs, snapshots)
              if pair.local_center is not None]
    return branching.done([*moves, self._set_in_flight(False)])

  def _begin(self, pairs, snapshots, step):
    served = self.check_served(_UNSERVED)
    with tf1.control_dependencies([served]):
      taken = [elastic_pairs.write(of, 'update', elastic_pairs.read(variable))
               for pair, snapshot in zip(pairs, snapshots)
               for variable, of in ((pair.local, snapshot.local),
                                    (pair.local_center, snapshot.local_center))
               if variable is not None]
      taken.append(self._set_in_flight(True))
    with tf1.control_dependencies([t for t in taken if t is not None]):
      begun = self.begin(step)
    return branching.done([begun])
