# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sizes and rate of a run's training, to predict it on another network."""

from __future__ import annotations

import os
import statistics
from typing import NamedTuple
from typing import Union

import tensorflow as tf

from tfplugin.report.reading import run_data

tf1 = tf.compat.v1


class TrainingSize(NamedTuple):
  """The numbers of a run.

  `model_bytes` is the size of all trained variables, `largest_bytes` the size
  of the largest one. `step_secs` is the median time of a worker's step,
  exchanges included. `num_workers` counts the tasks that train.
  """

  model_bytes: int
  largest_bytes: int
  step_secs: float
  num_workers: int
  num_ps: int


def read(run_dir: Union[str, os.PathLike]) -> TrainingSize:
  """Reads the events and the newest checkpoint's graph of a run.

  Raises ValueError if one of them is missing.
  """
  run = run_data.read(run_dir)
  rates = [event.details['steps_per_sec'] for event in run.reading.events
           if event.name == 'training' and
           event.details.get('steps_per_sec', 0) > 0]
  if not rates:
    raise ValueError(
        f'RUN_DIR: no task in {run_dir} has reported steps per second. Train '
        'for half a minute, or give --step_ms and --model_mb.')
  sizes = _sizes(run_dir)
  jobs = [task.partition(':')[0] for task in run.events_of]
  return TrainingSize(sum(sizes), max(sizes), 1 / statistics.median(rates),
                      len(run.training_tasks), max(1, jobs.count('ps')))


def _sizes(run_dir) -> list[int]:
  """Returns the bytes of each trained variable of one worker."""
  newest = tf.train.latest_checkpoint(os.fspath(run_dir))
  if newest is None or not tf.io.gfile.exists(f'{newest}.meta'):
    raise ValueError(
        f'RUN_DIR: {run_dir} has no checkpoint with a graph '
        '(model.ckpt-N.meta). Train until one is saved, or give --model_mb.')
  with tf.Graph().as_default():
    tf1.train.import_meta_graph(f'{newest}.meta', clear_devices=True)
    sizes = [variable.shape.num_elements() * variable.dtype.size
             for variable in tf1.trainable_variables()]
  if not sizes:
    raise ValueError(f'RUN_DIR: the graph of {newest} has no trained variable. '
                     'Give --model_mb.')
  return sizes
