# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hook that writes each task's curves for TensorBoard, and their order."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import version
from tfplugin.distribute import cluster_task
from tfplugin.distribute import per_graph
from tfplugin.distribute.sessions import session_interception
from tfplugin.events import event_files
from tfplugin.hooks import telemetry_hook
from tfplugin.hooks import tensorboard_files

tf1 = tf.compat.v1


class TensorBoardHook(telemetry_hook.TelemetryHook):
  """Writes scalars of each task under stable tags, and the order of the page.

  `tfplugin.estimator.train_and_evaluate` adds it. In a program that calls
  another function, give it to every task that trains.

  Scalars written, against global_step, if the graph has them:
    speed/steps_per_sec: the task's own steps.
    staleness/num_dropped, staleness/num_applied: the task's gradients so far.
    staleness/dropped_fraction: of these, in [0, 1].
    elastic/num_exchanges: of the task so far.

  The chief's scalars are in `model_dir`, and those written by `worker:1` in
  `model_dir/worker-1`. TensorBoard calls these directories runs. A worker of
  parameter servers also writes the scalar summaries of its model there, such as
  `loss`. Estimator writes only the chief's.

  The chief writes a layout for the tab Custom Scalars and the settings for the
  tab HParams once, when it starts. This needs the package tensorboard. Without
  it the scalars are still written, and a warning names the missing parts. On a
  full disk a warning is logged, and training continues. Once there is space,
  the curves continue too.

  Differences from tf.contrib: there was no such hook.

  Example:
    >>> import tensorflow as tf
    >>> from tfplugin import hooks
    >>> hook = hooks.TensorBoardHook(
    ...     tf.estimator.RunConfig(model_dir='a_model_dir'),
    ...     settings={'learning_rate': 0.1})
  """

  def __init__(self, config: tf.estimator.RunConfig,
               settings: Mapping[str, Any] | None = None,
               every_secs: float = 5.0):
    """Prepares the hook; the first write opens the file.

    Args:
      config: The Estimator's configuration, with task and model_dir.
      settings: Further settings for the tab HParams, such as the `params` of an
        Estimator: numbers, strings and lists of them. The tab also shows the
        size of the cluster, the versions and the settings of tfplugin-train.
      every_secs: Seconds between two points.

    Raises:
      TypeError: `every_secs` is not a number.
      ValueError: it is not positive, or not finite; or `config` names no
        model_dir.
    """
    super().__init__(TensorBoardSink(config, settings), every_secs=every_secs)


class TensorBoardSink(telemetry_hook.Sink):
  """Writer of reports as curves; the chief's orders the page, too."""

  def __init__(self, config: tf.estimator.RunConfig,
               settings: Mapping[str, Any] | None = None):
    """Stores the settings of `TensorBoardHook`; the first write opens a file.

    Raises ValueError if `config` names no model_dir.
    """
    telemetry_hook.check_model_dir(config)
    self._config = config
    self._task = cluster_task.from_config(config)
    self._settings = dict(settings or {})
    self._file = tensorboard_files.CurveFile(self._directory())
    self._shows_settings = False
    self._summaries: tf.Tensor | None = None

  def begin(self) -> None:
    """Finds the summaries to write; the chief writes the order of the page."""
    session_interception.on_completion(self._find_summaries)
    if self._task.is_chief:
      self._order_page()

  def fetches(self, asked: Any, is_due: bool) -> tf.Tensor | None:
    """Returns the model's summaries, if a point is due."""
    del asked
    return self._summaries if is_due else None

  def write(self, report: telemetry_hook.Report,
            fetched: bytes | None) -> None:
    """Writes a point."""
    summaries = [] if fetched is None else [fetched]
    scalars = _scalars(report)
    if scalars:
      summaries.append(tf1.Summary(value=[
          tf1.Summary.Value(tag=tag, simple_value=value)
          for tag, value in scalars.items()]))
    self._file.write(summaries, report.values[telemetry_hook.STEP])

  def end(self, report: telemetry_hook.Report) -> None:
    """Writes the last point."""
    self.write(report, None)
    if self._shows_settings:
      self._file.write([tensorboard_files.settings_end()])
    self._file.flush()

  def _directory(self) -> str:
    """Returns the task's directory, in which tfplugin.report reads too."""
    if self._task.is_chief:
      return self._config.model_dir
    return os.path.join(self._config.model_dir,
                        self._task.name.replace(':', '-'))

  def _find_summaries(self) -> None:
    """Finds the summaries to write, of the model and of all hooks.

    Estimator writes the chief's.
    """
    self._summaries = None
    # Without a ps a summary may need all tasks, which fetch at different times.
    if self._task.is_chief or not self._task.num_ps:
      return
    found = [summary for summary
             in tf1.get_collection(tf1.GraphKeys.SUMMARIES)
             if _tf_internals.summarized_value(summary.op) is not None]
    if found:
      self._summaries = tf1.summary.merge(found, collections=[])

  def _order_page(self) -> None:
    settings = {**_described(self._task, self._config), **self._settings}
    try:
      summaries = (tensorboard_files.layout(), tensorboard_files.settings_begin(
          tensorboard_files.plain(settings)))
    except ImportError as e:
      tf1.logging.warning(
          'TensorBoard will show the scalars of this run, but not its settings '
          'and no order of the charts: the package tensorboard, which writes '
          'them, cannot be imported (%s). Install it with: python -m pip '
          'install tensorboard', e)
      return
    self._file.write(summaries)
    self._file.flush()
    self._shows_settings = True


def _scalars(report: telemetry_hook.Report) -> dict[str, float]:
  """Returns the scalars of a report, by tag."""
  dropped = report.values.get(per_graph.DROPPED)
  applied = report.values.get(per_graph.APPLIED)
  exchanges = report.values.get(per_graph.EXCHANGES)
  found = {tensorboard_files.EXCHANGES: exchanges,
           tensorboard_files.DROPPED: dropped,
           tensorboard_files.APPLIED: applied,
           # A session that ends has no new step since the report before.
           tensorboard_files.STEPS_PER_SEC: report.steps_per_sec or None}
  if dropped is not None and applied is not None:
    found[tensorboard_files.DROPPED_FRACTION] = (
        dropped / max(dropped + applied, 1))
  return {tag: float(value) for tag, value in found.items()
          if value is not None}


def _described(task: cluster_task.ClusterTask,
               config: tf.estimator.RunConfig) -> dict[str, Any]:
  """Returns the settings of the run that are known without its program."""
  strategy = config.train_distribute
  return {
      'tensorflow': tf.__version__, 'tfplugin': version.__version__,
      'num_workers': task.num_workers, 'num_ps': task.num_ps,
      'train_distribute': strategy and type(strategy).__name__,
      **event_files.read_options(config.model_dir)}
