# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""tfplugin-train-tpu: TPUEstimator on a TPU, or on shards of this host.

    tfplugin-train-tpu --num_shards=4 --train_batch_size=64
"""

from __future__ import annotations

import time

import tensorflow as tf
from absl import app
from absl import flags
from absl import logging

from tfplugin.bin import failures
from tfplugin.bin import train_tpu_lib

# Each flag sets the field of `TpuOptions` of the same name.
_OPTIONS = (
    flags.DEFINE_string('model_dir', None, 'Where checkpoints and events go. '
                        'Default: a new directory under runs/.'),
    flags.DEFINE_bool('use_tpu', False, 'Whether there is a TPU.'),
    flags.DEFINE_string('master', '', 'The gRPC address of the TPU.'),
    flags.DEFINE_integer('num_shards', 2, 'Shards of each batch.'),
    flags.DEFINE_integer('iterations_per_loop', 100, 'Steps of a TPU between '
                         'two visits to the host; off TPU every step ends '
                         'there.'),
    flags.DEFINE_integer('train_batch_size', 64, 'Rows of a step, over all '
                         'shards.'),
    flags.DEFINE_integer('eval_batch_size', 64, 'Rows of a step of '
                         'evaluation, over all shards.'),
    flags.DEFINE_integer('train_steps', 1500, 'The global step to train to.'),
    flags.DEFINE_float('learning_rate', 2e-3, 'Of Adam.'),
    flags.DEFINE_string('data_file', '', 'Your own digits (csv).'),
)


def main(argv: list[str]) -> None:
  """Trains as the flags say."""
  if len(argv) > 1:
    raise app.UsageError(f'Unknown arguments: {" ".join(argv[1:])}')
  values = {flag.name: flag.value for flag in _OPTIONS}
  if not values['model_dir']:
    values['model_dir'] = time.strftime('runs/tpu-%Y%m%d-%H%M%S')
  tf.get_logger().setLevel('ERROR')
  metrics = train_tpu_lib.train(train_tpu_lib.TpuOptions(**values))
  logging.info('accuracy on the held-out rows: %.4f after %d steps',
               metrics['accuracy'], metrics['global_step'])
  logging.info('checkpoint and events: %s', values['model_dir'])


def run() -> None:
  """The console script."""
  logging.set_verbosity(logging.INFO)
  failures.run_program(main, _OPTIONS)


if __name__ == '__main__':
  run()
