# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Saver that restores a checkpoint without a counter of stale gradients.

`stale_counter` is in checkpoints, as it was with `tf.contrib`. A checkpoint of
a program without the wrapper lacks it, and a `Saver` restores all or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import Optional

import tensorflow as tf

from tfplugin.distribute.staleness import staleness_counters
from tfplugin.distribute.variables import saved_names

tf1 = tf.compat.v1


class StaleCounterSaver(tf1.train.Saver):
  """Saver that starts a counter at 0 if the checkpoint lacks it.

  It is made before the graph is complete; a Scaffold calls `build` later.
  """

  def __init__(self, counters: Iterable[tf.Variable], **kwargs: Any):
    """Prepares to save all variables; a checkpoint may lack the `counters`."""
    self._counters = {counter.op.name: counter for counter in counters}
    self._others: Optional[tf1.train.Saver] = None
    super().__init__(defer_build=True, **kwargs)

  def build(self) -> None:
    """Makes the ops; see the base class."""
    super().build()
    if self._others is not None:
      return
    everything = saved_names.by_name(
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


def with_counters(spec: Any, config: Any,
                  optimizers: Sequence[tf1.train.Optimizer]) -> Any:
  """Returns `spec`, able to restore a checkpoint that has no stale_counter.

  The result is `spec` itself unless the newest checkpoint has none. A Saver of
  the model_fn is kept, and restores in its own way. `config` may be None.
  `optimizers` are the applied optimizers, or their wrappers.
  """
  if (config is None or not config.model_dir or spec.scaffold.saver or
      tf1.get_collection(tf1.GraphKeys.SAVERS)):
    return spec
  checkpoint = tf1.train.latest_checkpoint(config.model_dir)
  if checkpoint is None or _has_counter(checkpoint):
    return spec
  saver = StaleCounterSaver(
      [v for optimizer in optimizers for v in optimizer.variables()
       if _last_name(v.op.name) in staleness_counters.NAMES],
      sharded=True, save_relative_paths=True,
      max_to_keep=config.keep_checkpoint_max,
      keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours)
  return spec._replace(scaffold=tf1.train.Scaffold(
      saver=saver, copy_from_scaffold=spec.scaffold))


def _has_counter(checkpoint: str) -> bool:
  return any(_last_name(name) == staleness_counters.STALE_COUNTER
             for name, _ in tf1.train.list_variables(checkpoint))


def _last_name(name: str) -> str:
  return name.rpartition('/')[2]
