# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The Estimator of the main job and its input, the same in every role."""

from __future__ import annotations

import functools
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfplugin.bin import datasets
from tfplugin.bin import models
from tfplugin.bin import options as options_lib
from tfplugin.bin import techniques
from tfplugin.distribute import cluster_task
from tfplugin.events import event_log
from tfplugin.events import record
from tfplugin.hooks import events_hook
from tfplugin.hooks import telemetry_hook

tf1 = tf.compat.v1

# By time, not by steps: a fast chief would delete old checkpoints faster than
# the evaluator reads them.
_CHECKPOINT_SECS = 2
_MAX_CHECKPOINTS = 20
_NUM_SUMMARIES = 100
_EVAL_BATCH = 1000
_EVAL_THROTTLE_SECS = 1
_STATUS_SECS = 0.5
_SEED = 1


def load_data(options: options_lib.TrainOptions) -> datasets.Split:
  """Returns the data that the model of `options` learns from."""
  if options.model == 'embedding':
    return datasets.load_word_pairs(options.data_file)
  return datasets.load_digits(options.data_file)


def make_experiment(options: options_lib.TrainOptions
                   ) -> tuple[tf.estimator.Estimator, tf.estimator.TrainSpec,
                              tf.estimator.EvalSpec]:
  """Makes Estimator and specs of this process, whose role is in TF_CONFIG."""
  data = load_data(options)
  _make_logical_devices(options)
  config = _run_config(options)
  estimator = tf.estimator.Estimator(
      techniques.make_model_fn(options, _status_adder(options, config)),
      config=config,
      params=make_params(options, data))
  task = cluster_task.from_config(config)
  train_spec = tf.estimator.TrainSpec(
      _input_fn(data.train, _rows_per_call(options),
                seed=_SEED + (task.training_index if task.trains else 0)),
      max_steps=options.steps)
  eval_spec = tf.estimator.EvalSpec(
      _input_fn(data.test, _EVAL_BATCH),
      steps=None,
      start_delay_secs=0,
      throttle_secs=_EVAL_THROTTLE_SECS)
  return estimator, train_spec, eval_spec


def make_params(options: options_lib.TrainOptions,
                data: datasets.Split) -> dict[str, Any]:
  """Returns the `params` of the model_fn."""
  return {
      'num_classes': data.num_classes,
      'optimizer': functools.partial(models.OPTIMIZERS[options.optimizer],
                                     options.learning_rate)}


def _run_config(options: options_lib.TrainOptions) -> tf.estimator.RunConfig:
  return tf.estimator.RunConfig(
      model_dir=options.model_dir,
      tf_random_seed=_SEED,
      save_checkpoints_secs=_CHECKPOINT_SECS,
      keep_checkpoint_max=_MAX_CHECKPOINTS,
      save_summary_steps=max(1, options.steps // _NUM_SUMMARIES),
      log_step_count_steps=max(1, options.steps // _NUM_SUMMARIES),
      train_distribute=techniques.make_strategy(options),
      session_config=_session_config(options),
      # Otherwise TensorFlow delays worker k by 5 * (k + 1) seconds.
      experimental_max_worker_delay_secs=0)


def _rows_per_call(options: options_lib.TrainOptions) -> int:
  """Returns the number of rows that the input_fn gives at once.

  Each replica of a strategy takes its own batch; a wrapper splits one batch.
  """
  if options.has_devices and options.strategy != 'none':
    return options.batch_size // options.devices
  return options.batch_size


def _session_config(options: options_lib.TrainOptions):
  """Returns a session config with all logical devices; None without any."""
  if not options.has_devices:
    return None
  return tf1.ConfigProto(device_count={'CPU': options.devices},
                         allow_soft_placement=True)


def _make_logical_devices(options: options_lib.TrainOptions) -> None:
  """Splits the CPU into logical devices, before anything else is made."""
  if options.has_devices:
    cpu, *_ = tf.config.list_physical_devices('CPU')
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * options.devices)


def _status_adder(options: options_lib.TrainOptions,
                  config: tf.estimator.RunConfig) -> Callable:
  """Returns a function that adds a report's summaries and events to a spec."""
  log = event_log.EventLog(options.model_dir, events_hook.task_name(config))

  def add_status(spec, report):
    for name, figure in {**report.figures, **report.counts}.items():
      if not callable(figure):
        tf1.summary.scalar(name.replace(' ', '_'), figure)
    hook = telemetry_hook.TelemetryHook(
        StatusSink(log, spec.loss, report.figures, report.counts),
        every_secs=_STATUS_SECS)
    return spec._replace(training_hooks=(*spec.training_hooks, hook))

  return add_status


class StatusSink(telemetry_hook.Sink):
  """Writer of the events `sampling`; the last one has the last step's loss.

  A function in `counts` finds its tensor once the graph is complete. The log of
  the task, if it has one, takes the place of `log`.
  """

  fetches_each_step = True

  def __init__(self, log: event_log.EventLog, loss: tf.Tensor,
               figures: Mapping[str, tf.Tensor], counts: Mapping):
    self._log = log
    self._tensors = {'loss': loss}
    self._figures = {'figures': dict(figures), 'counts': dict(counts)}
    self._last = {}

  def begin(self) -> None:
    """Finds the log, the global step and the tensors of the counts."""
    self._log = event_log.current() or self._log
    self._tensors['step'] = tf1.train.get_global_step()
    self._figures['counts'] = {
        name: count() if callable(count) else count
        for name, count in self._figures['counts'].items()}

  def fetches(self, asked: Any, is_due: bool) -> dict:
    """Returns step and loss, and the figures if an event is due."""
    del asked
    return {**self._tensors, **(self._figures if is_due else {})}

  def end_step(self, fetched: dict) -> None:
    """Keeps the newest values."""
    self._last.update(fetched)

  def write(self, report: telemetry_hook.Report, fetched: dict) -> None:
    """Writes an event."""
    del fetched
    self._log.write('sampling', **record.sample_details(
        num_steps=report.num_steps, **self._last))

  def end(self, report: telemetry_hook.Report) -> None:
    """Writes the last event, if there was a step."""
    if self._last:
      # Counts can be read at any time; figures belong to a step.
      self._last['counts'] = report.session.run(self._figures['counts'])
      self.write(report, {})


def _input_fn(examples: datasets.Examples, batch_size: int,
              seed: int | None = None) -> Callable:
  """Returns the input_fn of training, or without a `seed` of evaluation."""

  def input_fn():
    rows = tf.data.Dataset.from_tensor_slices(tuple(examples))
    if seed is None:
      return rows.batch(batch_size)
    rows = rows.shuffle(len(examples.labels), seed=seed).repeat()
    # Whole batches, so that each divides by the number of shards.
    return rows.batch(batch_size, drop_remainder=True).prefetch(2)

  return input_fn
