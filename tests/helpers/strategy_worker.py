# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training task under a strategy, stepped by hand instead of Estimator."""

from __future__ import annotations

from typing import Any
from typing import Callable

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


class StrategyWorker:
  """A task that builds a model_fn under a strategy in its own graph.

  It does by hand the work of Estimator with a strategy: a test decides when a
  worker makes its step, and reads variables in between. `spec` is the
  model_fn's, with the additions of the strategy. `session` is the
  `MonitoredSession`.
  """

  def __init__(self, strategy: tf1.distribute.Strategy,
               model_fn: Callable[..., Any], target: str = '',
               is_chief: bool = True, checkpoint_dir: str | None = None,
               make_saver: Callable[[], tf1.train.Saver] = tf1.train.Saver):
    """Builds the graph and waits until its session is ready.

    The model_fn gets None as features and labels. `target` is the server to
    connect to. A chief initialises the shared variables, or restores them from
    a checkpoint in `checkpoint_dir`. `make_saver` is called in the graph, after
    the model is built.
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
    """Returns the value of a variable, of its local copy if it has one."""
    return self._run(self._reads[f'{name}:0'])

  def center(self, name: str) -> np.ndarray:
    """Returns the value that is saved for a variable."""
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
