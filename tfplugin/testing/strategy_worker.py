# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""One training task under a strategy, stepped by hand as Estimator would."""

from __future__ import annotations

from typing import Any
from typing import Callable
from typing import Optional

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


class StrategyWorker:
  """Builds a model_fn under a strategy in a graph of its own, and steps it.

  The work of Estimator with a strategy is done here by hand, so that a test
  decides when a worker makes its step, and reads variables in between.

  Attributes:
    graph: The worker's graph.
    spec: The spec of the model_fn, with the strategy's additions.
    session: The `MonitoredSession`.
  """

  def __init__(self, strategy: tf1.distribute.Strategy,
               model_fn: Callable[..., Any], target: str = '',
               is_chief: bool = True, checkpoint_dir: Optional[str] = None,
               make_saver: Callable[[], tf1.train.Saver] = tf1.train.Saver):
    """Builds the graph and waits until its session is ready.

    Args:
      strategy: The strategy of this task.
      model_fn: Takes features, labels and mode; features and labels are None.
      target: The server to connect to.
      is_chief: Whether to initialise the shared variables.
      checkpoint_dir: Where a chief restores from, if anything is there.
      make_saver: Called in the graph, when the model is there.
    """
    config = strategy.update_config_proto(
        tf1.ConfigProto(allow_soft_placement=True))
    self.graph = tf.Graph()
    with self.graph.as_default(), strategy.scope():
      tf1.train.get_or_create_global_step()
      self.spec = strategy.extended.call_for_each_replica(
          tf.autograph.experimental.do_not_convert(model_fn),
          args=(None, None, 'train'))
      self._fetches = [
          strategy.group(self.spec.train_op),
          strategy.reduce('SUM', self.spec.loss, axis=None)]
      self.saver = make_saver()
      scaffold = tf1.train.Scaffold(saver=self.saver)
      if is_chief:
        creator = tf1.train.ChiefSessionCreator(
            scaffold, target, config, checkpoint_dir)
      else:
        creator = tf1.train.WorkerSessionCreator(
            scaffold, target, config, max_wait_secs=60)
      self._reads = {
          v.name: tf.identity(v.value())
          for v in tf1.global_variables() + tf1.local_variables()}
      self._local_reads = {
          v.name: tf.identity(v.value())
          for v in tf1.trainable_variables()}
      self.session = tf1.train.MonitoredSession(creator)

  def step(self, count: int = 1) -> float:
    """Makes `count` training steps; returns the last loss."""
    for _ in range(count):
      _, loss = self.session.run(self._fetches)
    return loss

  def value(self, name: str) -> np.ndarray:
    """The value of the variable `name`, of its local copy where it has one."""
    return self._run(self._reads[f'{name}:0'])

  def center(self, name: str) -> np.ndarray:
    """The value that is saved for the variable `name`."""
    shared = {v.name: v for v in self.graph.get_collection(
        tf1.GraphKeys.GLOBAL_VARIABLES)}
    return self._run(shared[f'{name}:0'])

  def save(self, prefix: str) -> str:
    """Writes a checkpoint; returns its path."""
    with self.graph.as_default():
      return self.session.run_step_fn(
          lambda step_context: self.saver.save(
              step_context.session, prefix, write_meta_graph=False))

  def close(self) -> None:
    """Ends the session."""
    self.session.close()

  def _run(self, fetch) -> np.ndarray:
    return self.session.run_step_fn(
        lambda step_context: step_context.session.run(fetch))
