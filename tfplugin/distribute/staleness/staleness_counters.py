# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counters of a wrapper that drops gradients, per graph, and their saver."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import per_graph
from tfplugin.distribute import placement
from tfplugin.ops import staleness as staleness_ops

tf1 = tf.compat.v1

# Checkpoints contain this name.
_STALE_COUNTER = 'stale_counter'
# The last parts of the counters' names.
_NAMES = (_STALE_COUNTER, 'num_dropped', 'num_applied')


class WorkerCounters:
  """The counters of one worker in one graph, which hooks find there.

  `num_nonfinite` counts drops of fresh gradients that are not finite; it is
  None where these are not dropped. `stale_counter`, if there is one, is a
  global `float32` scalar: the stale drops of all workers.
  """

  def __init__(self, prefix: str, device: str = '',
               counts_nonfinite: bool = False,
               stale_counter: tf.Variable | None = None):
    """Creates the worker's variables; see `StalenessCounters`."""
    self.stale_counter = stale_counter
    self.num_dropped = placement.WorkerCounter(
        f'{prefix}/num_dropped', device)
    self.num_applied = placement.WorkerCounter(
        f'{prefix}/num_applied', device)
    self.num_nonfinite: placement.WorkerCounter | None = None
    if counts_nonfinite:
      self.num_nonfinite = placement.WorkerCounter(
          f'{prefix}/num_nonfinite', device)
    with tf.init_scope():
      is_eager = tf.executing_eagerly()
    if not is_eager:
      for counter, name in ((self.num_dropped, per_graph.DROPPED),
                            (self.num_applied, per_graph.APPLIED)):
        per_graph.of(counter.variable.graph).add_count(
            counter.variable, name)

  def summarize(self, fraction_tag: str, nonfinite_tag: str) -> None:
    """Adds the summaries of the counters to the graph."""
    tf1.summary.scalar(fraction_tag, staleness_ops.dropped_fraction(
        self.num_dropped.value(), self.num_applied.value()))
    if self.num_nonfinite is not None:
      tf1.summary.scalar(nonfinite_tag, self.num_nonfinite.value())


class StalenessCounters:
  """The counters of one wrapper, created once in each graph.

  Variables created:
    stale_counter: of all workers; beside the global step. A second instance in
      one graph names it <prefix>/stale_counter.
    <prefix>/num_dropped, <prefix>/num_applied: int64, [], local, on the worker.
    <prefix>/num_nonfinite: likewise, where gradients are dropped for that.
  """

  def __init__(self, name: str, counts_nonfinite: bool = False):
    """Prepares the counters; `name`, made unique per graph, is their prefix."""
    self._counts_nonfinite = counts_nonfinite
    self._name = name
    self._of_graph = per_graph.PerGraph()

  def create(self, global_step: tf.Variable, worker_device: str = '') -> None:
    """Creates the counters beside the step and on the worker, once."""
    if not self.exist_here():
      with tf.init_scope():
        self._of_graph.set_for_current_graph(
            self._made(global_step, worker_device))

  def _made(self, global_step, worker_device) -> WorkerCounters:
    prefix, counter_name = _free_names(self._name)
    with tf1.name_scope(None), _beside(global_step), \
        per_graph.is_shared.set_to(True):
      stale_counter = tf1.Variable(0.0, trainable=False, name=counter_name)
    device = '' if tf.distribute.has_strategy() else worker_device
    return WorkerCounters(
        prefix, device, self._counts_nonfinite, stale_counter)

  def exist_here(self) -> bool:
    """Returns whether the current graph has counters of this instance.

    Of the optimizers that replicas make, the first one has them for all.
    """
    return self._of_graph.for_current_graph() is not None

  def for_current_graph(self) -> WorkerCounters:
    """Returns the current graph's counters; raises RuntimeError without any."""
    counters = self._of_graph.for_current_graph()
    if counters is None:
      raise RuntimeError('The counters were read before apply_gradients() was '
                         'called in this graph; call `minimize()` first.')
    return counters

  def variables(self) -> list[tf.Variable]:
    """Returns the variables of the current graph; none before `create`."""
    counters = self._of_graph.for_current_graph()
    if counters is None:
      return []
    local = (counters.num_dropped, counters.num_applied, counters.num_nonfinite)
    return [counters.stale_counter,
            *(counter.variable for counter in local if counter is not None)]

  def count_applied(self) -> list:
    """Returns the ops that count an applied gradient."""
    return [self.for_current_graph().num_applied.increment()]

  def count_dropped(self, fresh: tf.Tensor) -> list:
    """Returns the ops that count a drop; a `fresh` gradient was not finite."""
    return self.count_stale(fresh) + self._count_own_drop(
        tf.logical_not(fresh), fresh)

  def count_stale(self, fresh: tf.Tensor) -> list:
    """Returns the op that counts a stale gradient for all workers."""
    stale = tf.cast(tf.logical_not(fresh), tf.float32)
    return [self.for_current_graph().stale_counter.assign_add(stale)]

  def count_own(self, accepted: tf.Tensor, fresh: tf.Tensor) -> list:
    """Returns the ops that count a gradient for this worker alone."""
    dropped = tf.logical_not(accepted)
    return [self.for_current_graph().num_applied.increment(accepted),
            *self._count_own_drop(
                tf.logical_and(dropped, tf.logical_not(fresh)),
                tf.logical_and(dropped, fresh))]

  def _count_own_drop(self, stale: tf.Tensor, nonfinite: tf.Tensor) -> list:
    counters = self.for_current_graph()
    ops = [counters.num_dropped.increment(stale)]
    if counters.num_nonfinite is not None:
      ops.append(counters.num_nonfinite.increment(nonfinite))
    return ops


def _free_names(name: str) -> tuple[str, str]:
  """Returns a prefix, and the name of stale_counter, not used in this graph."""
  scope = tf1.get_variable_scope().name
  first = f'{scope}/{_STALE_COUNTER}' if scope else _STALE_COUNTER
  if tf.executing_eagerly():
    return name, first
  used = {v.op.name for v in tf1.global_variables() + tf1.local_variables()}
  prefix, suffix = name, 0
  while f'{prefix}/num_applied' in used or f'{prefix}/{_STALE_COUNTER}' in used:
    suffix += 1
    prefix = f'{name}_{suffix}'
  return prefix, first if first not in used else f'{prefix}/{_STALE_COUNTER}'


def _beside(step: tf.Variable):
  """Returns a context that places a variable on the device of `step`."""
  if tf.distribute.has_strategy():
    return tf.distribute.get_strategy().extended.colocate_vars_with(step)
  return _tf_internals.colocate_with(step)


class StaleCounterSaver(tf1.train.Saver):
  """Saver that starts a counter at 0 if the checkpoint lacks it.

  `stale_counter` is in checkpoints, as it was with `tf.contrib`. A checkpoint
  of a program without the wrapper lacks it, and a `Saver` restores all or
  nothing. This one is made before the graph is complete; a Scaffold calls
  `build` later.
  """

  def __init__(self, counters: Iterable[tf.Variable], **kwargs: Any):
    """Prepares to save all variables; a checkpoint may lack the `counters`."""
    self._counters = {counter.op.name: counter for counter in counters}
    self._others: tf1.train.Saver | None = None
    super().__init__(defer_build=True, **kwargs)

  def build(self) -> None:
    """Makes the ops; see the base class."""
    super().build()
    if self._others is not None:
      return
    everything = _tf_internals.variables_by_saved_name(
        [*tf1.global_variables(),
         *tf1.get_collection(tf1.GraphKeys.SAVEABLE_OBJECTS)])
    self._saved_counters = {name: counter
                            for name, counter in self._counters.items()
                            if name in everything}
    self._others = tf1.train.Saver(
        {name: value for name, value in everything.items()
         if name not in self._counters},
        sharded=True, name='restore_all_but_counters')

  def restore(self, sess: tf1.Session, save_path: str) -> None:
    """Restores everything that the checkpoint has; see the base class."""
    self._others.restore(sess, save_path)
    reader = tf1.train.load_checkpoint(save_path)
    for name, counter in self._saved_counters.items():
      counter.load(reader.get_tensor(name) if reader.has_tensor(name) else 0,
                   sess)


def with_saver(spec: Any, config: Any,
                  optimizers: Sequence[tf1.train.Optimizer]) -> Any:
  """Returns `spec`, able to restore a checkpoint that has no stale_counter.

  The result is `spec` itself unless the newest checkpoint has none. A Saver of
  the model_fn is kept, and restores in its own way.
  """
  if (config is None or not config.model_dir or spec.scaffold.saver or
      tf1.get_collection(tf1.GraphKeys.SAVERS)):
    return spec
  checkpoint = tf1.train.latest_checkpoint(config.model_dir)
  if checkpoint is None or any(
      _last_name(name) == _STALE_COUNTER
      for name, _ in tf1.train.list_variables(checkpoint)):
    return spec
  saver = StaleCounterSaver(
      [v for optimizer in optimizers for v in optimizer.variables()
       if _last_name(v.op.name) in _NAMES],
      sharded=True, save_relative_paths=True,
      max_to_keep=config.keep_checkpoint_max,
      keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours)
  return spec._replace(scaffold=_tf_internals.changed_scaffold(
      spec.scaffold, saver=saver))


def _last_name(name: str) -> str:
  return name.rpartition('/')[2]
