# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounds of an evaluator, beside a chief that saves and deletes checkpoints."""

from __future__ import annotations

import posixpath
import re
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin.hooks.endings import chief_report

tf1 = tf.compat.v1

# TensorFlow's name for an export until it is complete.
_UNFINISHED = re.compile(r'temp-\d+/?')


class EvaluatorRounds:
  """Loop that evaluates and exports the newest checkpoint, round by round.

  The evaluator gets no `max_steps`: it ends when its watch says so.

  * If the chief deletes a checkpoint before it is read, the newest one is
    evaluated in its place.
  * The exporters learn of the last checkpoint of a run however the run ends.
    TensorFlow reports the first one at `max_steps`, which may lack the last
    steps of some workers, and none where an input ends before.
  """

  def __init__(self, eval_spec: tf.estimator.EvalSpec,
               watch: chief_report.Watch):
    """Stores settings; `watch` knows whether a checkpoint is the run's last."""
    self._exporters = [_Exporter(e) for e in eval_spec.exporters]
    self._watch = watch
    self.eval_spec = eval_spec._replace(exporters=tuple(self._exporters))

  def evaluate(self, estimator: tf.estimator.Estimator,
               once: Callable[[], Any]) -> Any:
    """Evaluates and exports by `once`, again if its checkpoint was deleted."""
    latest_checkpoint = estimator.latest_checkpoint
    while True:
      # In this order: the last checkpoint is written before the end of the run
      # is known.
      is_last = self._watch.is_complete()
      for exporter in self._exporters:
        exporter.is_last = is_last
      checkpoint = latest_checkpoint()
      # TensorFlow asks again, and the chief may have saved in between.
      estimator.latest_checkpoint = lambda newest=checkpoint: newest
      try:
        result = once()
      except (ValueError, tf.errors.OpError) as error:
        if checkpoint is None or tf.io.gfile.exists(f'{checkpoint}.index'):
          raise
        tf1.logging.warning(
            'The chief has deleted %s while it was evaluated or exported; the '
            'newest checkpoint is evaluated in its place. A larger '
            '`keep_checkpoint_max` keeps more. (%s)', checkpoint, error)
        for exporter in self._exporters:
          exporter.remove_unfinished()
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
      for exporter in self._exporters:
        exporter.finish()


class _Exporter:
  """Exporter that knows whether the checkpoint of this round is the last."""

  def __init__(self, exporter: tf.estimator.Exporter):
    self.is_last = False
    self._exporter = exporter
    self._arguments: dict[str, Any] = {}
    self._has_finished = False

  @property
  def name(self) -> str:
    return self._exporter.name

  def export(self, estimator, export_path, checkpoint_path, eval_result,
             is_the_final_export):
    self._arguments = {
        'estimator': estimator, 'export_path': export_path,
        'checkpoint_path': checkpoint_path, 'eval_result': eval_result}
    is_last = is_the_final_export or self.is_last
    result = self._exporter.export(
        **self._arguments, is_the_final_export=is_last)
    # An exporter that has written need not write the same again.
    self._has_finished = is_last or result is not None
    return result

  def finish(self) -> None:
    if self._arguments and not self._has_finished:
      self._has_finished = True
      self._exporter.export(**self._arguments, is_the_final_export=True)

  def remove_unfinished(self) -> None:
    path = self._arguments.get('export_path')
    if path and tf.io.gfile.isdir(path):
      for name in tf.io.gfile.listdir(path):
        if _UNFINISHED.fullmatch(name):
          tf.io.gfile.rmtree(posixpath.join(path, name.rstrip('/')))
