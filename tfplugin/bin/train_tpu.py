# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""tfplugin-train-tpu: trains a small TPU program on shards of this machine.

    tfplugin-train-tpu --num_shards=4 --train_batch_size=64

With --use_tpu it trains on a TPU, which was never tried.
"""

from __future__ import annotations

import dataclasses
import time

import tensorflow as tf
from absl import app
from absl import flags
from absl import logging

from tfplugin.bin import command_line
from tfplugin.bin import run_files
from tfplugin.bin import train_tpu_lib

# Each flag sets the field of `TpuOptions` of the same name.
_COMMANDS = command_line.CommandLine((
    command_line.Group('What is trained', (
        flags.DEFINE_string('data_file', '', 'A file of your own: digits as '
                            'csv, with 64 pixels of 0 to 16 and the label in '
                            'each line.'),
        flags.DEFINE_integer('num_shards', 2, 'Shards of each batch.'),
        flags.DEFINE_integer('train_batch_size', 64, 'Rows of a step, over all '
                             'shards.'),
        flags.DEFINE_integer('eval_batch_size', 64, 'Rows of a step of '
                             'evaluation, over all shards.'),
        flags.DEFINE_integer('train_steps', 1500, 'The global step to train '
                             'to.'),
        flags.DEFINE_float('learning_rate', 2e-3, 'The learning rate of Adam.'),
    ), is_common=True),
    command_line.Group('Where it runs', (
        flags.DEFINE_string('model_dir', None, 'The directory for checkpoints '
                            'and summaries. Default: a new one under runs/.'),
        flags.DEFINE_bool('use_tpu', False, 'Whether there is a TPU.'),
        flags.DEFINE_string('master', '', 'The gRPC address of the TPU.'),
        flags.DEFINE_integer('iterations_per_loop', 100, 'Steps of a TPU '
                             'between two returns to the host.'),
    ), is_common=True),
), [command_line.Need(('master', 'iterations_per_loop'), '--use_tpu',
                      lambda values: values['use_tpu'])])


def main(argv: list[str]) -> None:
  """Trains as the flags say."""
  if len(argv) > 1:
    raise app.UsageError(f'Unknown arguments: {" ".join(argv[1:])}')
  values = _COMMANDS.values()
  is_new = not values['model_dir']
  if is_new:
    values['model_dir'] = time.strftime('runs/tpu-%Y%m%d-%H%M%S')
  tf.get_logger().setLevel('ERROR')
  with command_line.errors_of_usage():
    options = train_tpu_lib.TpuOptions(**values)
    if is_new:
      options = dataclasses.replace(options, model_dir=run_files.new_dir(
          'model_dir', options.model_dir))
  metrics = train_tpu_lib.train(options)
  accuracy, step = metrics['accuracy'], metrics['global_step']
  print(f'accuracy on the held-out rows: {accuracy:.4f} after {step} steps')
  print(f'checkpoint and TensorBoard summaries: {options.model_dir}')


def run() -> None:
  """Runs the console script."""
  logging.set_verbosity(logging.INFO)
  _COMMANDS.run(main)


if __name__ == '__main__':
  run()
