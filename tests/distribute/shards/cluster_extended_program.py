# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""One worker of a cluster for cluster_extended_test; prints sums and variables.

usage: cluster_extended_program.py MODE SETTINGS_AS_JSON DIRECTORY

TF_CONFIG says which one. DIRECTORY has the gradients of shard i in i.npz: of
the type in its name, and of rows. The learning rate is -1, so that a variable
that begins with 0 has the sum after one step.
"""

import faulthandler
import functools
import json
import os
import pathlib
import sys
import time

import numpy as np
import tensorflow as tf

import tfplugin

tf1 = tf.compat.v1

# How long a worker waits at its end for the others.
_LAST_SECS = 30.0
# Before the test gives up. Then each thread tells where it waits.
_HANGS_SECS = 90.0


def make_sgd():
  """Adds the sum of the gradients."""
  return tf1.train.GradientDescentOptimizer(-1.0)


def load(directory, shard):
  """The gradients of a shard, by name."""
  with np.load(pathlib.Path(directory, f'{shard}.npz')) as found:
    return dict(found)


def gradient_of(variable, name, values):
  """A gradient: rows where there are indices."""
  gradient = tf.constant(values[name])
  if f'{name}.indices' not in values:
    return gradient
  return tf.IndexedSlices(
      gradient, tf.constant(values[f'{name}.indices']),
      tf.shape(variable))


def names_of(values):
  """The gradients, without their indices, sorted."""
  return sorted(name for name in values if not name.endswith('.indices'))


def shape_of(name, values):
  """That of the variable of a gradient."""
  shape = values[name].shape
  return (8, *shape[1:]) if f'{name}.indices' in values else shape


def apply(variables, values):
  """The train op of a replica."""
  return make_sgd().apply_gradients(
      [(gradient_of(v, name, values), v) for name, v in variables.items()],
      tf1.train.get_global_step())


def apply_sums(variables, values):
  """Sums the gradients of a loss by hand, and applies the sums."""
  losses = [tf.reduce_sum(v * values[name]) for name, v in variables.items()]
  gradients = tf.gradients(losses, list(variables.values()))
  return make_sgd().apply_gradients(zip(
      map(tfplugin.cross_replica_sum, gradients), variables.values()))


def apply_squares(variables, values):
  """Changes a shard's gradients before they are summed."""
  losses = [tf.reduce_sum(v * values[name]) for name, v in variables.items()]
  gradients = tf.gradients(losses, list(variables.values()))
  return make_sgd().apply_gradients(
      [(g * g, v) for g, v in zip(gradients, variables.values())])


def in_run(strategy, own, mode):
  """One step of `strategy.run`; the variables' values by name."""
  make_train_op = {'summed': apply_sums, 'squared': apply_squares}.get(
      mode, apply)
  with strategy.scope():
    variables = {name: tf.Variable(
        np.zeros(shape_of(name, own), own[name].dtype), name=name)
                 for name in names_of(own)}

  def step():
    strategy.run(lambda: make_train_op(variables, own) and None)

  (step if mode == 'eager' else tf.function(step))()
  return {name: v.numpy() for name, v in variables.items()}


class CopyHook(tf1.train.SessionRunHook):
  """Notes this worker's copies at the end of the training."""

  def __init__(self, result):
    self._result = result

  def begin(self):
    self._reads = {v.op.name.split('/')[0]: v.read_value()
                   for v in tf1.trainable_variables()}

  def end(self, session):
    self._result.update(session.run(self._reads))


class LateReadHook(tf1.train.SessionRunHook):
  """Notes the global step of each run, whose reads wait for a while."""

  def __init__(self, result):
    self._steps = result['steps'] = []

  def begin(self):
    self._reads = [
        tf1.get_default_graph().as_graph_element(tf1.train.get_global_step()),
        # TensorFlow's own hooks read this.
        *tf1.get_collection('global_step_read_op_cache')]
    for secs, read in zip((0.1, 0.3), self._reads):
      op = read.op
      while op.type == 'Identity':
        op = op.inputs[0].op
      with tf1.device(op.device):
        late = tf1.py_func(functools.partial(time.sleep, secs), [], [])
      op._add_control_input(late)

  def before_run(self, run_context):
    return tf1.train.SessionRunArgs(self._reads)

  def after_run(self, run_context, run_values):
    self._steps.append(run_values.results)


def by_estimator(strategy, own, directory, num_steps, make_hook):
  """Steps of an Estimator; this worker's copies, or steps, by name."""

  def model_fn(features, labels, mode):
    del features, labels
    variables = {name: tf1.get_variable(
        name, shape_of(name, own), tf.as_dtype(own[name].dtype),
        tf1.zeros_initializer()) for name in names_of(own)}
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.constant(0.0), train_op=apply(variables, own))

  result = {}
  estimator = tf.estimator.Estimator(
      model_fn, config=tf.estimator.RunConfig(
          f'{directory}/model', train_distribute=strategy))

  def dataset():
    return tf.data.Dataset.from_tensors(0.0).repeat()

  tf.estimator.train_and_evaluate(
      estimator, tf.estimator.TrainSpec(
          dataset, max_steps=num_steps, hooks=[make_hook(result)]),
      tf.estimator.EvalSpec(dataset, steps=1))
  return result


def no_gradients(strategy):
  """Sums of 1 + 2^-20, of no variable: 2 + 2^-19, where nothing is rounded."""

  @tf.function
  def step():
    def shard():
      value = tf.constant(1.0 + 2.0 ** -20)
      context = tf.distribute.get_replica_context()
      return (context.all_reduce('SUM', value),
              tfplugin.cross_replica_sum(value), value)
    total, by_hand, each = strategy.run(shard)
    return total, by_hand, strategy.reduce('SUM', each, axis=None)

  return dict(zip(('all_reduce', 'cross_replica_sum', 'reduce'),
                  (each.numpy() for each in step())))


def await_all(directory):
  """Waits for all: one that ends takes what another still receives from it."""
  deadline = time.monotonic() + _LAST_SECS
  while time.monotonic() < deadline and (
      len(list(directory.glob('found*.npz'))) <
      len(list(directory.glob('[0-9].npz')))):
    time.sleep(0.01)


def main(mode, settings, directory):
  """See the module."""
  faulthandler.dump_traceback_later(_HANGS_SECS)
  settings = json.loads(settings)
  index = json.loads(os.environ['TF_CONFIG'])['task']['index']
  if mode.startswith('v1'):
    tf1.disable_v2_behavior()
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * 2)
  strategy = tfplugin.distribute.CrossShardStrategy(
      **{'devices': ['CPU:0'], 'reduction': 'weighted_sum', **settings})
  own = load(directory, index)
  try:
    if mode == 'no gradients':
      found = no_gradients(strategy)
    elif mode in ('v1', 'v2'):
      found = by_estimator(strategy, own, directory, 1, CopyHook)
    elif mode in ('v1 late', 'v2 late'):
      found = by_estimator(strategy, own, directory, 3, LateReadHook)
    else:
      found = in_run(strategy, own, mode)
  except ValueError as error:
    found = {'error': str(error)}
  np.savez(pathlib.Path(directory, f'found{index}.npz'), **found)
  await_all(pathlib.Path(directory))
  sys.stderr.flush()
  os._exit(0)  # A server does not end by itself.


if __name__ == '__main__':
  main(*sys.argv[1:])
