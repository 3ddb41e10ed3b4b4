# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rounds of an evaluator, beside a chief that saves and deletes."""

from __future__ import annotations

import posixpath
import re
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin.hooks.endings import chief_report

tf1 = tf.compat.v1

# As TensorFlow calls an export until it is whole.
_UNFINISHED = re.compile(r'temp-\d+/?')


class EvaluatorRounds:
  """Evaluates and exports the newest checkpoint, round by round.

  The evaluator is given no `max_steps`: it ends when its watch says so.

  * A checkpoint that the chief deletes before it is read is no failure: the
    newest one is evaluated in its place.
  * The exporters are told of the last checkpoint of a run, for every end.
    TensorFlow tells them of the first one at `max_steps`, which may not have
    the last steps of all workers, and of none where an input ends before.
  """

  def __init__(self, eval_spec: tf.estimator.EvalSpec,
               watch: chief_report.Watch):
    """Takes an evaluator's settings.

    Args:
      eval_spec: The evaluation's.
      watch: Knows whether the newest checkpoint is the run's last.
    """
    self._exporters = [_Exporter(e) for e in eval_spec.exporters]
    self._watch = watch
    self.eval_spec = eval_spec._replace(exporters=tuple(self._exporters))

  def evaluate(self, estimator: tf.estimator.Estimator,
               once: Callable[[], Any]) -> Any:
    """Makes a round; another one where its checkpoint has gone.

    Args:
      estimator: Knows the newest checkpoint.
      once: Evaluates and exports it.
    """
    while True:
      # In this order: the last checkpoint comes before the run's end is known.
      is_last = self._watch.is_complete()
      for exporter in self._exporters:
        exporter.is_last = is_last
      checkpoint = estimator.latest_checkpoint()
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
      if result[0].metrics:
        self._watch.evaluated(result[0].metrics[tf1.GraphKeys.GLOBAL_STEP])
      return result

  def finish(self, kind: Optional[type], *unused: Any) -> None:
    """Exports the last checkpoint, if it was evaluated before it was known.

    Args:
      kind: The error that ends the evaluator, as `__exit__` is called.
      *unused: More about it.
    """
    if kind is None and self._watch.is_complete():
      for exporter in self._exporters:
        exporter.finish()


class _Exporter:
  """An exporter that is told of the last checkpoint of a run.

  Attributes:
    is_last: Whether the checkpoint of this round is the last.
  """

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
    # One that has written needs not write the same again.
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
