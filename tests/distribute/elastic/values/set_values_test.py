# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of untrained variables: written by the step, or set from outside."""

import logging

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin import estimator as estimator_lib
from tfplugin import optimizers
from tfplugin.testing import clusters

tf1 = tf.compat.v1

_SETTINGS = {'communication_period': 2, 'moving_rate': 0.125}
STRATEGIES = {
    'decorator': lambda: None,
    'strategy': lambda: distribute.ElasticAverageStrategy(**_SETTINGS),
    'devices': lambda: distribute.ElasticAverageStrategy(
        devices=['/cpu:0', '/cpu:1'], **_SETTINGS),
}


class _Lower(tf1.train.SessionRunHook):
  """Sets the rate to 0 after the first step; notes it in each step."""

  def __init__(self, rate):
    self._fetch = rate.value()
    self._set = tf.group(rate.assign(0.0))
    self.seen = []

  def before_run(self, run_context):
    return tf1.train.SessionRunArgs(self._fetch)

  def after_run(self, run_context, run_values):
    self.seen.append(float(run_values.results))
    if len(self.seen) == 1:
      run_context.session.run(self._set)


def _train(tmp_path, form, steps,
           make_optimizer=tf1.train.GradientDescentOptimizer):
  hooks = []

  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=0.0)
    rate = tf1.get_variable('rate', initializer=1.0, trainable=False)
    mean = tf1.get_variable('mean', initializer=0.0, trainable=False)
    hooks.append(_Lower(rate))
    loss = w * tf.reduce_mean(features)
    update = make_optimizer(rate).minimize(
        loss, tf1.train.get_global_step())
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, training_hooks=[hooks[-1]],
        train_op=tf.group(update, mean.assign_add(1.0)))

  if form == 'decorator':
    model_fn = estimator_lib.elastic_average(**_SETTINGS)(model_fn)
  estimator = tf1.estimator.Estimator(
      model_fn, str(tmp_path), tf1.estimator.RunConfig(
          train_distribute=STRATEGIES[form]()))
  estimator.train(
      lambda: tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(),
      max_steps=steps)
  # Devices build a hook each, of which the first one's is run.
  return max((hook.seen for hook in hooks), key=len), estimator


@pytest.mark.parametrize('form', STRATEGIES)
def test_what_a_hook_sets_is_shared_and_a_statistic_averaged(
    form, tmp_path, behavior, caplog):
  del behavior
  with caplog.at_level(logging.INFO, 'tensorflow'):
    seen, estimator = _train(tmp_path, form, 2)
  assert seen == [1.0, 0.0, 0.0, 0.0]
  assert estimator.get_variable_value('rate') == 0.0
  # Copy 2, centre 0 -> 1.75, .25; then 3.75 -> 3.3125, .6875; devices: twice.
  center, copy, num_copies = 0.0, 0.0, 2 if form == 'devices' else 1
  for _ in range(2):
    copy += 2.0
    difference = 0.125 * (copy - center)
    copy, center = copy - difference, center + num_copies * difference
  assert estimator.get_variable_value('mean') == center
  line, = {r.getMessage() for r in caplog.records
           if r.getMessage().startswith('Elastic averaging: ')}
  assert 'trained and averaged: w; statistics, averaged: mean; ' in line
  assert 'shared: rate, global_step;' in line


def _kinds(caplog):
  """Returns the names of each kind in the line that a start logs."""
  line, = {r.getMessage() for r in caplog.records
           if r.getMessage().startswith('Elastic averaging: ')}
  kinds = (kind.split(': ') for kind in line.split(': ', 1)[1][:-1].split('; '))
  return {kind: set(names.split(', ')) for kind, names in kinds}


_SLOTS = {'beta1_power', 'beta2_power', 'w/Adam', 'w/Adam_1'}


@pytest.mark.parametrize('form', STRATEGIES)
def test_the_chiefs_slots_are_logged_as_local(form, tmp_path, behavior, caplog):
  del behavior
  with caplog.at_level(logging.INFO, 'tensorflow'):
    _train(tmp_path, form, 1, tf1.train.AdamOptimizer)
  kinds = _kinds(caplog)
  assert kinds.pop('local to each worker') >= _SLOTS
  assert kinds == {'trained and averaged': {'w'},
                   'statistics, averaged': {'mean'},
                   'shared': {'rate', 'global_step'}}


def test_slots_of_the_wrapper_are_logged_as_local(behavior, caplog):
  del behavior
  with tf.Graph().as_default():
    getter = optimizers.ElasticAverageCustomGetter('')
    with tf1.variable_scope('', custom_getter=getter):
      w = tf1.get_variable('w', initializer=0.0)
    optimizer = optimizers.ElasticAverageOptimizer(
        tf1.train.AdamOptimizer(0.1), 1, getter, rho=0.0)
    optimizer.minimize(w * w, tf1.train.create_global_step())
    with caplog.at_level(logging.INFO, 'tensorflow'):
      optimizer.make_session_run_hook(True, 0).begin()
  kinds = _kinds(caplog)
  assert kinds['shared'] == {'global_step'}
  assert kinds['local to each worker'] >= _SLOTS
  assert kinds['trained and averaged'] == {'global_center_variable/w'}


def test_what_one_worker_sets_reaches_the_others(behavior):
  """Two workers of a cluster; each makes the steps that it is told to."""
  del behavior
  cluster = clusters.in_process_cluster(2)
  workers = []
  for index in range(2):
    set_mask, masks = [], []
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster.cluster_spec, task_type='worker', task_id=index)
    strategy = distribute.ElasticAverageStrategy(resolver, **_SETTINGS)
    with tf.Graph().as_default() as graph, strategy.scope():
      tf1.train.create_global_step()

      def step(features, masks=masks, set_mask=set_mask):
        w = tf1.get_variable('w', initializer=0.0)
        mask = tf1.get_variable('mask', initializer=[1.0, 1.0],
                                trainable=False)
        set_mask.append(tf.group(mask.assign([0.0, 1.0])))
        masks.append(mask.value())
        loss = w * features
        return tf.estimator.EstimatorSpec(
            'train', loss=loss, train_op=tf1.train.GradientDescentOptimizer(
                0.5).minimize(loss, tf1.train.get_global_step()))

      spec = strategy.extended.call_for_each_replica(
          tf.autograph.experimental.do_not_convert(step), args=(1.0,))
      init = tf1.global_variables_initializer()
      local = [tf1.local_variables_initializer(), tf1.tables_initializer()]
    session = cluster.session(index, graph)
    if not index:
      session.run(init)
    session.run(local)
    workers.append((session, spec.train_op, masks[0], set_mask[0]))

  def run(index, what):
    session = workers[index][0]
    return session.run(workers[index][what])

  run(0, 3)  # The first worker sets its mask, and exchanges.
  run(0, 1)
  run(0, 1)
  np.testing.assert_array_equal(run(0, 2), [0.0, 1.0])
  np.testing.assert_array_equal(run(1, 2), [1.0, 1.0])
  run(1, 1)
  run(1, 1)
  np.testing.assert_array_equal(run(1, 2), [0.0, 1.0])
  for session, *_ in workers:
    session.close()
