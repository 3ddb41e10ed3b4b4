# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The main job: trains on a cluster of processes and says what came of it."""

from __future__ import annotations

import os
import pathlib
import sys
import sysconfig
import time
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Optional

import numpy as np
import tensorflow as tf

from tfplugin.bin import checkpoints
from tfplugin.bin import curves
from tfplugin.bin import events
from tfplugin.bin import extras
from tfplugin.bin import local_cluster
from tfplugin.bin import models
from tfplugin.bin import options as options_lib
from tfplugin.bin import ports
from tfplugin.bin import progress as progress_lib
from tfplugin.bin import report
from tfplugin.bin import resumption
from tfplugin.bin import run_files
from tfplugin.bin import status
from tfplugin.distribute import cluster_config
from tfplugin.hooks import finish_board

# Ample for a ps to see that all is done and leave.
_PS_LIMIT_SECS = 15.0


def train(options: options_lib.TrainOptions) -> report.Result:
  """Trains, showing progress, and returns what came of it.

  A checkpoint in `model_dir` that has the steps already is only evaluated.

  Args:
    options: The settings of the run.

  Returns:
    The result, which has not been printed.

  Raises:
    ValueError: the data file or the model_dir is not fit for it.
    RuntimeError: a package is missing, another run is in the model_dir, or a
      role died that cannot be spared.
    KeyboardInterrupt: the user ended it. No process is left in any case.
  """
  extras.check_installed()
  first_step = resumption.check_input(options)
  is_done = first_step >= options.steps
  # A single process that has nothing to train would not evaluate either.
  cluster = ({} if options.is_local and not is_done else
             ports.make_cluster(options.workers, options.ps))
  tasks = _tasks(options, cluster, is_done)
  with run_files.reserved(options.model_dir):
    options.save()
    start = time.time()
    with progress_lib.Progress(options.steps) as progress:
      lost = _run_cluster(options, cluster, tasks, progress)
    return _result(options, tasks, lost, start, first_step)


def _tasks(options: options_lib.TrainOptions,
           cluster: Mapping[str, list[str]],
           is_done: bool) -> list[cluster_config.Task]:
  """Returns the tasks to start."""
  if not cluster:
    # It evaluates each checkpoint itself.
    return [cluster_config.Task('chief', 0)]
  tasks = cluster_config.tasks_of(cluster,
                                  options.evaluator or options.is_local)
  if is_done:
    return [task for task in tasks if task.type == 'evaluator']
  return tasks


def _run_cluster(options: options_lib.TrainOptions,
                 cluster: Mapping[str, list[str]],
                 tasks: Sequence[cluster_config.Task],
                 progress: progress_lib.Progress) -> dict[str, str]:
  """Runs the processes to their end; returns how each lost one ended."""

  def handle_lost(role):
    progress.say(f'{role.task.name} {role.describe_end()}; the run goes on '
                 f'without it. Its log: {role.log_path}')
    # Or the chief would wait for its last step.
    finish_board.report_finished(tf.train.ClusterSpec(dict(cluster)),
                                 role.task.name, time_limit_secs=5.0)

  settings = str(pathlib.Path(options.model_dir) / options_lib.FILE_NAME)
  command = [sys.executable, '-m', 'tfplugin.bin.role', settings]
  with local_cluster.LocalCluster(run_files.log_dir(options.model_dir),
                                  on_lost=handle_lost) as processes:
    for task in tasks:
      processes.start(task, command, cluster, _environment())
    processes.wait(
        while_waiting=lambda: progress.update(_statuses(options, tasks)))
    if not processes.wait_for_ps(_PS_LIMIT_SECS):
      progress.say('A parameter server did not end by itself in '
                   f'{_PS_LIMIT_SECS:g} s; it is ended now.')
    return {role.task.name: role.describe_end() for role in processes.lost}


def _environment() -> dict[str, str]:
  """Returns the variables that the roles get besides this process's."""
  # Of TensorFlow's C++ part, warnings and errors, unless others are wanted.
  variables = {
      'TF_CPP_MIN_LOG_LEVEL': os.environ.get('TF_CPP_MIN_LOG_LEVEL', '1'),
      'PYTHONUNBUFFERED': '1'}
  root = str(pathlib.Path(__file__).absolute().parents[2])
  if root not in sysconfig.get_paths().values():
    # A source tree, which a child would not find by itself.
    paths = [root, os.environ.get('PYTHONPATH')]
    variables['PYTHONPATH'] = os.pathsep.join(filter(None, paths))
  return variables


def _statuses(options: options_lib.TrainOptions,
              tasks: Sequence[cluster_config.Task]
             ) -> dict[str, Optional[status.Status]]:
  """Returns the last status of each task that trains."""
  return {
      task.name: status.read_last(
          run_files.status_path(options.model_dir, task))
      for task in tasks if task.type in ('chief', 'worker')
  }


def _result(options: options_lib.TrainOptions,
            tasks: Sequence[cluster_config.Task],
            lost: Mapping[str, str], start: float,
            first_step: int) -> report.Result:
  wall_secs = time.time() - start
  statuses = _statuses(options, tasks)
  known = [s for s in statuses.values() if s is not None]
  eval_dir = run_files.eval_dir(options.model_dir)
  last_step = checkpoints.global_step(options.model_dir)
  # Of the end of this run: without an evaluator there may be earlier ones.
  end_steps = range(max(options.steps, first_step), last_step + 1)
  accuracies = [
      value for step, value in zip(*events.read_curve(eval_dir, 'accuracy'))
      if step in end_steps]
  return report.Result(
      title=options.title,
      accuracy=accuracies[-1] if accuracies else None,
      first_step=first_step,
      last_step=last_step,
      wall_secs=wall_secs,
      roles=statuses,
      start_secs={name: s.first_step_time - start
                  for name, s in statuses.items() if s is not None},
      lost=lost,
      figures={**status.combine(known), **_norms(options)},
      files={
          'checkpoint': tf.train.latest_checkpoint(options.model_dir),
          'TensorBoard': f'tensorboard --logdir {options.model_dir}',
          'logs': str(run_files.log_dir(options.model_dir)),
          'curves': str(curves.draw(options.model_dir, options.title)),
      })


def _norms(options: options_lib.TrainOptions) -> dict[str, float]:
  """Returns the largest row norm of each embedding table, if there are any."""
  if options.model != 'embedding':
    return {}
  reader = tf.train.load_checkpoint(options.model_dir)
  return {
      f'largest row norm of {name} (bound {options.max_norm:g})'
      if options.technique == 'variable_clipping' else
      f'largest row norm of {name}':
          float(np.linalg.norm(reader.get_tensor(name), axis=1).max())
      for name in models.EMBEDDING_TABLES
  }
