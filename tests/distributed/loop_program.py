# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A user's program without Estimator: a loop over a session's steps.

Each task leaves the loop when it sees the last step. Each step takes 1 off `w`.

  python loop_program.py <settings, as JSON>
"""

import json
import os
import pathlib
import sys

import tensorflow as tf

import tfplugin

tf1 = tf.compat.v1
LAST_STEP = 40


def _optimizer(form, w):
  sgd = tf1.train.GradientDescentOptimizer(1.0)
  if form == 'clip':
    return tfplugin.VariableClippingOptimizer(sgd, {w: []}, 1e6)
  return tfplugin.DropStaleGradientOptimizer(sgd, 10**6)


def _plain(form, task, num_workers):
  """Returns the train op and hooks; every variable is the cluster's."""
  del task, num_workers
  w = tf1.get_variable('w', [], initializer=tf1.zeros_initializer())
  step = tf1.train.get_or_create_global_step()
  return _optimizer(form, w).minimize(w * 1.0, step), []


def _elastic(form, task, num_workers):
  del form
  index = 0 if task['type'] == 'chief' else task['index'] + 1
  getter = tfplugin.ElasticAverageCustomGetter(
      f'/job:{task["type"]}/task:{task["index"]}')
  with getter.scope():
    w = tf1.get_variable('w', [], initializer=tf1.zeros_initializer())
  optimizer = tfplugin.ElasticAverageOptimizer(
      tf1.train.GradientDescentOptimizer(1.0), num_workers, getter,
      communication_period=1, moving_rate=0.25, rho=0.0)
  train_op = optimizer.minimize(w * 1.0, tf1.train.get_or_create_global_step())
  return train_op, [optimizer.make_session_run_hook(index == 0, index)]


def main(settings):
  """Runs this process's part."""
  directory = pathlib.Path(settings['directory'])
  config = json.loads(os.environ['TF_CONFIG'])
  task, cluster = config['task'], tf.train.ClusterSpec(config['cluster'])
  server = tf.distribute.Server(
      cluster, job_name=task['type'], task_index=task['index'])
  form, made = settings['form'], 0
  build = _elastic if form == 'elastic' else _plain
  with tf.Graph().as_default(), tf1.device(tf1.train.replica_device_setter(
      cluster=cluster,
      worker_device=f'/job:{task["type"]}/task:{task["index"]}')):
    train_op, hooks = build(form, task, 1 + cluster.num_tasks('worker'))
    step = tf1.train.get_global_step()
    # Without filters a late worker waits for a chief that has left.
    filters = ['/job:ps', f'/job:{task["type"]}/task:{task["index"]}']
    with tf1.train.MonitoredTrainingSession(
        server.target, config=tf1.ConfigProto(device_filters=filters),
        is_chief=task['type'] == 'chief', hooks=hooks,
        checkpoint_dir=str(directory / 'model'), save_checkpoint_secs=600,
        save_summaries_secs=None, save_summaries_steps=None,
        log_step_count_steps=None) as session:
      while not session.should_stop():
        session.run(train_op)
        made += 1
        if session.run(step) >= LAST_STEP:
          break
  (directory / f'{task["type"]}-{task["index"]}.made').write_text(str(made))


if __name__ == '__main__':
  main(json.loads(sys.argv[1]))
