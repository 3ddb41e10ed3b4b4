# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Evaluator's rounds, and exports of the last checkpoint of a training.

TensorFlow reports the first checkpoint at `max_steps` as the last one. It may
lack the last steps of some workers. If an input ends before, TensorFlow reports
none, and a `FinalExporter` exports nothing.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin.checkpoints import refused_writes
from tfplugin.hooks.shutdown import chief_report

tf1 = tf.compat.v1

# TensorFlow's name for an export until it is complete.
_UNFINISHED = re.compile(r'temp-\d+/?')


class LastExports:
  """Exporters of one training.

  Attributes:
    are_last: Whether the checkpoint that is exported next is the last one.
    eval_spec: The EvalSpec, with exporters that learn of the last checkpoint.
  """

  def __init__(self, eval_spec: tf.estimator.EvalSpec):
    self.are_last = False
    self._exporters = [_Exporter(e, self) for e in eval_spec.exporters]
    self.eval_spec = eval_spec._replace(exporters=tuple(self._exporters))

  def finish(self, result: tuple | None = None) -> tuple | None:
    """Exports the last checkpoint, unless an exporter has done so.

    `result` comes from `tf.estimator.train_and_evaluate`, or is None. Returns
    it with the exports.
    """
    for exporter in self._exporters:
      exporter.finish()
    if not result or not result[1]:
      return result
    return result[0], [exporter.result for exporter in self._exporters]

  def remove_unfinished(self) -> None:
    """Removes the directories of interrupted exports."""
    for exporter in self._exporters:
      exporter.remove_unfinished()


class _Exporter:
  """Exporter that knows whether the checkpoint of this round is the last."""

  def __init__(self, exporter: tf.estimator.Exporter, exports: LastExports):
    self.result = None
    self._exporter, self._exports = exporter, exports
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
    is_last = is_the_final_export or self._exports.are_last
    self.result = self._exporter.export(
        **self._arguments, is_the_final_export=is_last)
    # An exporter that has written need not write the same again.
    self._has_finished = is_last or self.result is not None
    return self.result

  def finish(self) -> None:
    if self._arguments and not self._has_finished:
      self._has_finished = True
      self.result = self._exporter.export(
          **self._arguments, is_the_final_export=True)

  def remove_unfinished(self) -> None:
    path = self._arguments.get('export_path')
    if path and tf.io.gfile.isdir(path):
      for name in tf.io.gfile.listdir(path):
        if _UNFINISHED.fullmatch(name):
          tf.io.gfile.rmtree(posixpath.join(path, name.rstrip('/')))


class EvaluatorRounds:
  """Loop that evaluates and exports the newest checkpoint, round by round.

  The evaluator gets no `max_steps`: it ends when its watch says so.

  * If the chief deletes a checkpoint before it is read, the newest one is
    evaluated in its place.
  * The exporters learn of the last checkpoint of a run however the run ends.
  """

  def __init__(self, exports: LastExports,
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

  def finish(self, kind: type | None, *unused: Any) -> None:
    """Exports the last checkpoint, if it became known after its evaluation.

    It is called like `__exit__`: `kind` is the error that ends the evaluator.
    """
    if kind is None and self._watch.is_complete():
      self._exports.finish()
