# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes steps as fast as they go until servers refuse some, for real.

  python -m tests.chaos.refused_steps [--minutes 5] [--without_hook]

Two workers and a parameter server, a process each; a step is an update of one
number. A hook reads the step after each one, as the hook that saves does.
TensorFlow's servers refuse one of 43,000 runs by chance, once they have seen
100,000. Says of each worker how many steps it made in how many sessions, and
how long the longest step took; fails where a worker hangs, as one does without
the hook, sooner or later, or fails.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import time

import tensorflow as tf

from tfplugin import hooks
from tfplugin.bin.processes import ports

tf1 = tf.compat.v1

_ROOT = pathlib.Path(__file__).parents[2]
# Of the first start, and of a step that is ended.
_PATIENCE_SECS = 120.0


class _Steps(tf1.train.SessionRunHook):
  """Counts, and reads the step by a run of its own."""

  sessions = steps = 0
  longest_secs = 0.0
  _asked = _read = None

  def begin(self):
    self._read = tf1.train.get_global_step() + 0

  def after_create_session(self, session, coord):
    del session, coord
    self.sessions += 1

  def before_run(self, run_context):
    del run_context
    self._asked = self._asked or time.monotonic()

  def after_run(self, run_context, run_values):
    del run_values
    run_context.session.run(self._read)
    self.longest_secs = max(self.longest_secs, time.monotonic() - self._asked)
    self._asked, self.steps = None, self.steps + 1


def _role(job, task, cluster, secs, has_hook):
  config = tf1.ConfigProto(intra_op_parallelism_threads=1)
  server = tf.distribute.Server(cluster, job, task, config=config)
  if job == 'ps':
    server.join()
  worker = f'/job:worker/task:{task}'
  with tf1.device(tf1.train.replica_device_setter(
      worker_device=worker, cluster=tf.train.ClusterSpec(cluster))):
    step = tf1.train.get_or_create_global_step()
    w = tf1.get_variable('w', initializer=1.0, use_resource=True)
    train_op = tf1.train.GradientDescentOptimizer(1e-9).minimize(
        w * w + tf.random.uniform([]), step)
  made = _Steps()
  with tf1.train.MonitoredTrainingSession(
      server.target, is_chief=task == 0, save_checkpoint_secs=None,
      save_summaries_steps=None, save_summaries_secs=None,
      log_step_count_steps=None,
      config=tf1.ConfigProto(device_filters=['/job:ps', worker]),
      hooks=[made, *[hooks.RefusedStepHook()] * has_hook]) as session:
    end = time.monotonic() + secs
    while time.monotonic() < end:
      session.run(train_op)
  sys.stdout.write(
      f'worker:{task}: {made.steps:,} steps in {made.sessions} sessions, the '
      f'longest {made.longest_secs:.1f} s\n')
  sys.stdout.flush()
  os._exit(0)  # A server has no end.


def main() -> int:
  """Runs all roles, or one; returns the exit status."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--minutes', type=float, default=5.0)
  parser.add_argument('--without_hook', action='store_true')
  parser.add_argument('--role', help=argparse.SUPPRESS)
  arguments = parser.parse_args()
  secs = 60 * arguments.minutes
  if arguments.role:
    job, task, *places = arguments.role.split(',')
    tf1.disable_eager_execution()
    _role(job, int(task), {'ps': places[:1], 'worker': places[1:]}, secs,
          not arguments.without_hook)
  places = [f'{ports.LOOPBACK}:{port}' for port in ports.pick_free(3)]
  processes = [
      subprocess.Popen([sys.executable, '-W', 'ignore', '-m', __spec__.name,
                        *sys.argv[1:], '--role', ','.join([role, *places])],
                       cwd=_ROOT)
      for role in ('ps,0', 'worker,0', 'worker,1')]
  limit = time.monotonic() + secs + _PATIENCE_SECS
  try:
    ends = [process.wait(limit - time.monotonic())
            for process in processes[1:]]
  except subprocess.TimeoutExpired:
    sys.stderr.write('A worker hangs.\n')
    return 1
  finally:
    for process in processes:
      process.kill()
      process.wait()
  return int(any(ends))


if __name__ == '__main__':
  sys.exit(main())
