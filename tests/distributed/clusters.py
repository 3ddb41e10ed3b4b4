# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clusters of processes that each have a value of TF_CONFIG.

The program is `ends_program.py`; each of its steps is in the checkpoint.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

import tensorflow as tf

from tfplugin.bin.processes import ports

PROGRAM = pathlib.Path(__file__).with_name('ends_program.py')
LOOP_PROGRAM = pathlib.Path(__file__).with_name('loop_program.py')
# Forms of `ends_program.py` that train with parameter servers.
DECORATORS = ['elastic', 'drop_stale', 'clip', 'towers', 'cross_shard',
              'optimizer', 'clip_optimizer', 'elastic_optimizer']
STRATEGIES = ['elastic_strategy', 'drop_stale_strategy', 'clip_strategy',
              'packed_strategy']
FORMS = DECORATORS + STRATEGIES
LIMIT_SECONDS = 90
SERVER = ('import json, os, sys; import tensorflow as tf; '
          'tf.distribute.Server(json.loads(os.environ["TF_CONFIG"])["cluster"],'
          ' job_name="ps", task_index=0).join()')


def addresses(*tasks):
  """Returns an address for each task."""
  return dict(zip(tasks, [f'127.0.0.1:{port}'
                          for port in ports.pick_free(len(tasks))]))


def configs_of(*tasks, **others):
  """Returns a TF_CONFIG for each task, as `job-index`; the cluster has all."""
  at, cluster = addresses(*tasks), {}
  for task in tasks:
    cluster.setdefault(task.partition('-')[0], []).append(at[task])
  cluster.pop('evaluator', None)
  return {task: {'cluster': cluster, **others,
                 'task': {'type': task.partition('-')[0],
                          'index': int(task.partition('-')[2])}}
          for task in tasks}


def run(directory, configs, foreign=(), program=(str(PROGRAM),), **settings):
  """Runs a process for each value of TF_CONFIG; all must end well.

  Args:
    directory: Where the run is.
    configs: The values, by the names of the tasks.
    foreign: Those that run a server of the platform's, which never ends.
    program: Arguments of the interpreter.
    **settings: Of the program.
  """
  command = [sys.executable, *program,
             json.dumps({'directory': str(directory), **settings})]
  path = os.pathsep.join(
      [str(PROGRAM.parents[2]), os.environ.get('PYTHONPATH', '')])
  with contextlib.ExitStack() as stack:
    processes = {}
    for name, config in configs.items():
      log = stack.enter_context(open(directory / f'{name}.log', 'w'))
      process = subprocess.Popen(
          [sys.executable, '-c', SERVER] if name in foreign else command,
          stdout=log, stderr=subprocess.STDOUT,
          env={**os.environ, 'PYTHONPATH': path,
               'TF_CONFIG': json.dumps(config)})
      stack.callback(process.wait)
      stack.callback(process.kill)
      if name not in foreign:
        processes[name] = process
    deadline = time.monotonic() + LIMIT_SECONDS
    for name, process in processes.items():
      try:
        status = process.wait(deadline - time.monotonic())
      except subprocess.TimeoutExpired:
        status = 'no end'
      assert status == 0, (
          name, status, (directory / f'{name}.log').read_text()[-4000:])


def check(directory, num_steps):
  newest = tf.train.latest_checkpoint(str(directory / 'model'))
  assert newest.endswith(f'-{num_steps}')
  reader = tf.train.load_checkpoint(newest)
  assert reader.get_tensor('global_step') == num_steps
  assert sum(int(path.read_text()) for path in directory.glob('*.made')) == (
      num_steps)
