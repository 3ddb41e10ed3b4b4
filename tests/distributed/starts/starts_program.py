# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A user's program: its table in two parts starts with another program's rows.

Each task writes the rows that it sees in its first step and at its end.

  python starts_program.py <settings, as JSON>
"""

import json
import os
import pathlib
import sys
import time

import tensorflow as tf

import tfplugin.estimator
from tests.helpers import wrapper_forms

tf1 = tf.compat.v1


def _model_fn(how, path, rate):
  """Returns a model_fn; each step takes `rate` off each row of `body/table`."""

  def model_fn(features, labels, mode):
    del labels
    table = tf1.get_variable(
        'body/table', [4, 1], initializer=tf1.zeros_initializer(),
        partitioner=tf1.fixed_size_partitioner(2))
    head = tf1.get_variable('head/w', initializer=[[2.0]])
    if how == 'init_from_checkpoint':
      tf1.train.init_from_checkpoint(path, {'body/table': 'body/table'})
    elif how == 'scope':
      tf1.train.init_from_checkpoint(path, {'body/': 'body/'})
    saver = None
    if how in ('init_fn', 'named', 'interrupted'):
      saver = tf1.train.Saver(
          {'body/table': table} if how == 'named' else _parts())
    loss = tf.reduce_mean(features) * (
        tf.reduce_sum(tf.concat(list(table), 0)) + 0.0 * tf.reduce_sum(head))

    def init_fn(_, session):
      if how == 'interrupted':
        _exit_once(path)
      saver.restore(session, path)

    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, train_op=wrapper_forms.minimize(loss, rate),
        scaffold=saver and tf1.train.Scaffold(init_fn=init_fn))

  return model_fn


def _exit_once(path):
  """Ends the first process that calls it, like one that is killed."""
  mark = pathlib.Path(f'{path}.interrupted')
  if not mark.exists():
    mark.touch()
    time.sleep(2.0)  # Enough for steps of a worker that does not wait.
    os._exit(1)


def _parts():
  return [v for v in tf1.global_variables() if v.name.startswith('body/table')]


class _Look(tf1.train.SessionRunHook):
  """Writes the rows of the first step and of the end."""

  def __init__(self, path):
    self._path = path
    self._seen = []

  def begin(self):
    parts = sorted((v for v in tf1.trainable_variables()
                    if 'table' in v.name), key=lambda v: v.name)
    self._read = tf.concat([part.read_value() for part in parts], 0)

  def before_run(self, run_context):
    if not self._seen:
      self._look(run_context.session)

  def end(self, session):
    self._look(session)
    self._path.write_text(json.dumps(self._seen))

  def _look(self, session):
    self._seen.append(session.run(self._read)[:, 0].tolist())


class _WarmStart(tf1.train.SessionRunHook):
  """A warm start from a hook."""

  def __init__(self, path):
    self._path = path

  def begin(self):
    tf1.train.warm_start(self._path, 'body/.*')


class _Restore(_WarmStart):
  """A Saver of the program's own, in each new session."""

  def begin(self):
    self._saver = tf1.train.Saver(_parts())

  def after_create_session(self, session, coord):
    self._saver.restore(session, self._path)


def main(settings):
  """Runs this process's part."""
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * 2)
  if settings['behavior'] == 'v1':
    tf1.disable_v2_behavior()
  directory = pathlib.Path(settings['directory'])
  task = json.loads(os.environ['TF_CONFIG'])['task']
  how, path = settings['how'], settings['pretrained']
  estimator = wrapper_forms.estimator(
      settings['form'], _model_fn(how, path, settings['rate']),
      directory / 'model', session_config=tf1.ConfigProto(
          device_count={'CPU': 2}, allow_soft_placement=True),
      experimental_max_worker_delay_secs=0,
      warm_start_from=tf.estimator.WarmStartSettings(path, 'body/.*')
      if how == 'settings' else None)
  hooks = [{'hook': _WarmStart, 'restore': _Restore}[how](path)] if how in (
      'hook', 'restore') else []
  tfplugin.estimator.train_and_evaluate(
      estimator, tf1.estimator.TrainSpec(
          wrapper_forms.input_fn(), settings['max_steps'],
          [*hooks, _Look(directory / f'{task["type"]}-{task["index"]}.seen')]),
      tf1.estimator.EvalSpec(wrapper_forms.input_fn(1), steps=1))


if __name__ == '__main__':
  main(json.loads(sys.argv[1]))
