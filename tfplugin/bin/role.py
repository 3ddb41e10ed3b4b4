# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The program of each process of the main job; TF_CONFIG names its role.

`train_lib` starts it. Users start it by hand on several machines, with the same
settings file and the TF_CONFIG of each:

    TF_CONFIG=... python -m tfplugin.bin.role MODEL_DIR/train_options.json
"""

from __future__ import annotations

import sys

import tensorflow as tf

from tfplugin.bin import experiment
from tfplugin.bin import options as options_lib
from tfplugin.bin.processes import ports
from tfplugin.distribute import cluster_task
from tfplugin.estimator import cluster_training

_USAGE = 'Usage: python -m tfplugin.bin.role MODEL_DIR/train_options.json'


def main(argv: list[str]) -> None:
  """Runs this process's part of the training."""
  if len(argv) != 2:
    raise SystemExit(f'{_USAGE}. Received: {argv[1:]}')
  check_port(cluster_task.from_environment())
  tf.get_logger().setLevel('INFO')
  options = options_lib.load(argv[1])
  cluster_training.train_and_evaluate(
      *experiment.make_experiment(options),
      start_limit_secs=options.start_limit_secs,
      finish_limit_secs=options.finish_limit_secs)


def check_port(task: cluster_task.ClusterTask) -> None:
  """Raises `RuntimeError` if the port of `task`'s server is occupied."""
  if not task.is_alone and task.job != 'evaluator':  # It has a server.
    ports.check_free(
        f'{task.name} in `TF_CONFIG`',
        task.cluster_spec.task_address(task.job, task.index),
        'or give the task another port in every `TF_CONFIG`')


if __name__ == '__main__':
  main(sys.argv)
