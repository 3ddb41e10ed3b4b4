# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounds of an evaluator, beside a chief that saves and deletes checkpoints."""

from __future__ import annotations

from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin.checkpoints import refused_writes
from tfplugin.hooks.endings import chief_report
from tfplugin.hooks.endings import last_exports

tf1 = tf.compat.v1


class EvaluatorRounds:
  """Loop that evaluates and exports the newest checkpoint, round by round.

  The evaluator gets no `max_steps`: it ends when its watch says so.

  * If the chief deletes a checkpoint before it is read, the newest one is
    evaluated in its place.
  * The exporters learn of the last checkpoint of a run however the run ends.
  """

  def __init__(self, exports: last_exports.LastExports,
               watch: chief_report.Watch):
    """Stores settings; `watch` knows whether a checkpoint is the run's last."""
    self._exports, self._watch = exports, watch

  def evaluate(self, estimator: tf.estimator.Estimator,
               once: Callable[[], Any]) -> Any:
    """Evaluates and exports by `once`, again if its checkpoint was deleted."""
    latest_checkpoint = estimator.latest_checkpoint
    while True:
      # In this order: the last checkpoint is written before the end of the run
      # is known.
      self._exports.are_last = self._watch.is_complete()
      checkpoint = latest_checkpoint()
      # TensorFlow asks again, and the chief may have saved in between.
      estimator.latest_checkpoint = lambda newest=checkpoint: newest
      # The evaluation writes its metrics there.
      refused_writes.wait_until_writable(estimator.eval_dir(), 'The evaluator',
                                         model_dir=estimator.model_dir)
      try:
        result = once()
      except (ValueError, tf.errors.OpError) as error:
        if checkpoint is None or tf.io.gfile.exists(f'{checkpoint}.index'):
          raise
        tf1.logging.warning(
            'The chief has deleted %s while it was evaluated or exported; the '
            'newest checkpoint is evaluated in its place. A larger '
            '`keep_checkpoint_max` keeps more. (%s)', checkpoint, error)
        self._exports.remove_unfinished()
        continue
      finally:
        estimator.latest_checkpoint = latest_checkpoint
      if result[0].metrics:
        self._watch.evaluated(result[0].metrics[tf1.GraphKeys.GLOBAL_STEP])
      return result

  def finish(self, kind: Optional[type], *unused: Any) -> None:
    """Exports the last checkpoint, if it became known after its evaluation.

    It is called like `__exit__`: `kind` is the error that ends the evaluator.
    """
    if kind is None and self._watch.is_complete():
      self._exports.finish()
