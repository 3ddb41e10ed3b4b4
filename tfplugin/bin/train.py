# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""tfplugin-train: trains a small model with a wrapper, to try the wrapper.

    tfplugin-train --wrapper=drop_stale --workers=2

Starts the processes of a cluster on this machine: a chief, workers, parameter
servers and an evaluator. At the end it prints the result and the files.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from absl import app
from absl import flags
from absl import logging

from tfplugin.bin import command_line
from tfplugin.bin import models
from tfplugin.bin import options as options_lib
from tfplugin.bin import run_files
from tfplugin.bin import techniques
from tfplugin.bin import train_lib
from tfplugin.bin.results import live_display
from tfplugin.bin.results import run_result
from tfplugin.events import record

_int, _float, _bool = (flags.DEFINE_integer, flags.DEFINE_float,
                       flags.DEFINE_bool)
_TECHNIQUES = list(techniques.TECHNIQUES)


def _needs() -> list[command_line.Need]:
  """Returns the conditions under which flags have an effect."""
  of_wrappers = [
      command_line.Need(
          [setting],
          ' or '.join(f'--{kind}={name}' for name
                      in techniques.with_setting(setting)
                      for kind in ('wrapper', 'strategy')),
          lambda values, setting=setting: (
              _technique(values) in techniques.with_setting(setting)))
      for setting in dict.fromkeys(
          setting for technique in techniques.TECHNIQUES.values()
          for setting in technique.own_settings)]
  return [
      *of_wrappers,
      command_line.Need(('evaluator', 'start_limit_secs', 'finish_limit_secs'),
                        'a cluster, e.g. --workers=1 --ps=1', _has_cluster),
      command_line.Need(('max_restarts', 'spare'),
                        '--restart=on_failure or always',
                        lambda values: values['restart'] != 'never')]


def _technique(values: Mapping[str, Any]) -> str:
  """Returns the chosen wrapper or strategy."""
  if values['strategy'] != 'none':
    return values['strategy']
  return values['wrapper'] or 'elastic_average'


def _has_cluster(values: Mapping[str, Any]) -> bool:
  technique = techniques.TECHNIQUES[_technique(values)]
  workers, ps = values['workers'], values['ps']
  has_ps = technique.needs_ps if ps is None else ps > 0
  return not technique.has_devices and (workers is None or workers > 0 or
                                        has_ps)


# Each flag but `live` sets the field of `TrainOptions` of the same name.
_COMMANDS = command_line.CommandLine((
    command_line.Group('What is trained', (
        command_line.define_wrapper(
            'wrapper', None, _TECHNIQUES, 'The wrapper around the model_fn. '
            'Default: elastic_average, or none with --strategy.'),
        command_line.define_wrapper(
            'strategy', 'none', _TECHNIQUES, 'The strategy that the model, '
            'with a plain optimizer, runs under.'),
        flags.DEFINE_enum('model', 'mlp', list(models.MODELS), 'mlp and cnn '
                          'classify digits; embedding learns word vectors.'),
        flags.DEFINE_string(
            'data_file', '', 'A file of your own: digits as csv, with 64 '
            'pixels of 0 to 16 and the label in each line; for embedding a '
            'text, with verses such as "Ge1:1 In the beginning ...".'),
        flags.DEFINE_enum('optimizer', None, list(models.OPTIMIZERS), 'The '
                          'optimizer inside the wrapper. Default: the '
                          "model's."),
        _float('learning_rate', None, 'The learning rate. Default: the '
               "model's."),
        _int('batch_size', None, 'Rows per step of each worker. Default: the '
             "model's."),
        _int('steps', None, 'The global step to train to. A run in the same '
             "model_dir continues from where it was. Default: the model's."),
    ), is_common=True),
    command_line.Group('Where it runs', (
        flags.DEFINE_string(
            'model_dir', None, 'The directory for checkpoints, events, logs '
            'and curves. Default: a new one under runs/.'),
        _int('workers', None, 'Worker processes besides the chief, which '
             'trains too: 1 makes two that train. Default: 1; towers and '
             'cross_shard: 0.'),
        _int('ps', None, 'Parameter servers. Default: 1; towers and '
             'cross_shard: 0.'),
        _bool('evaluator', True, 'Whether a process evaluates checkpoints.'),
        _int('devices', 2, 'towers, cross_shard: number of logical CPUs.'),
    ), is_common=True),
    command_line.Group('Settings of a wrapper', (
        _int('communication_period', 10, 'elastic_average: local steps between '
             'two exchanges.'),
        _float('moving_rate', None, 'elastic_average: the share of the '
               'difference between worker copy and centre that an exchange '
               'moves. Default: 0.9 / period / processes that train.'),
        _float('rho', 0.0, 'elastic_average: strength of the penalty.'),
        _bool('synchronous', False, 'elastic_average: all workers start '
                                    'together.'),
        _int('staleness', 10, 'drop_stale: how many steps late a gradient may '
             'be.'),
        _float('max_norm', 2.0, 'clip: the largest row norm.'),
    ), is_common=True),
    command_line.define_failures(
        _float('start_limit_secs', 300.0, 'Seconds that a worker waits for the '
               'chief.'),
        _float('finish_limit_secs', 120.0, 'Seconds that the chief waits for '
               'workers at the end.'),
    ),
    command_line.Group('The terminal', (
        _bool('live', True, 'Whether a terminal shows a progress bar and a '
              'live line for each task.'),
    )),
), _needs())


def main(argv: list[str]) -> None:
  """Trains as the flags say."""
  if len(argv) > 1:
    raise app.UsageError(f'Unknown arguments: {" ".join(argv[1:])}')
  values = _COMMANDS.values()
  is_new = not values['model_dir']
  if is_new:
    values['model_dir'] = _new_model_dir(values)
  # The roles' logs have TensorFlow's messages, which would break the progress
  # line.
  tf.get_logger().setLevel('ERROR')
  logging.set_verbosity(logging.WARNING)
  terminal = live_display.find_terminal() if values.pop('live') else None
  with command_line.errors_of_usage():
    options = options_lib.TrainOptions(**values)
    if is_new:
      options = dataclasses.replace(options, model_dir=run_files.new_dir(
          'model_dir', options.model_dir))
  with _model_dir_named(options.model_dir if is_new else None):
    run_result.show(train_lib.train(options, terminal))


@contextlib.contextmanager
def _model_dir_named(model_dir: str | None) -> Iterator[None]:
  """Names a directory that the program chose, once the run is interrupted.

  Without --model_dir the same command would begin another run.
  """
  try:
    yield
  except KeyboardInterrupt as e:
    if model_dir:
      e.args = (str(e).replace(record.CONTINUES, 'the same command with '
                               f'--model_dir={model_dir} continues'),)
    raise


def _new_model_dir(values: Mapping[str, Any]) -> str:
  kind = '' if values['strategy'] == 'none' else '-strategy'
  return time.strftime(
      f'runs/{_technique(values)}{kind}-{values["model"]}-%Y%m%d-%H%M%S')


def run() -> None:
  """Runs the console script."""
  _COMMANDS.run(main)


if __name__ == '__main__':
  run()
