# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of placement, of ops and of variables, that no outer scope changes."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import placement

tf1 = tf.compat.v1


@pytest.mark.parametrize('device', ['/job:worker/task:1', '/device:CPU:0', ''])
def test_setter_does_not_reach_inside(behavior, device):
  del behavior
  setter = tf1.train.replica_device_setter(
      ps_tasks=2, worker_device='/job:worker/task:0')
  with tf.Graph().as_default(), tf1.device(setter):
    with placement.device_override(device):
      inside = tf1.get_variable('a', [])
    outside = [tf1.get_variable(name, []) for name in 'bc']
  assert inside.device == device
  # What is inside took no turn in the setter's round.
  assert [v.device for v in outside] == ['/job:ps/task:0', '/job:ps/task:1']


def test_a_colocation_is_left_for_the_devices_around_it():
  setter = tf1.train.replica_device_setter(ps_tasks=2)
  with tf.Graph().as_default() as graph, tf1.device(setter):
    around = _tf_internals.device_functions()
    with placement.device_override('/job:worker/task:1'):
      local = tf1.get_variable('a', [])
    with graph.colocate_with(local.op), placement.outer_devices(around):
      shared = tf1.get_variable('b', [])
    with placement.outer_devices(around), tf1.device('/device:CPU:1'):
      deeper = tf1.get_variable('c', [])
  assert [shared.device, deeper.device] == [
      '/job:ps/task:0', '/job:ps/task:1/device:CPU:1']


def test_devices_of_one_task_are_not_remote():
  ps, worker = '/job:ps/task:0', '/job:worker/task:0'
  assert placement.is_remote(ps, worker)
  assert not placement.is_remote(ps, f'{ps}/device:CPU:1')
  with tf.Graph().as_default():
    variables = [tf1.get_variable('a', [])]
    assert not placement.are_in_tasks(variables)
    with placement.device_override(ps):
      variables.append(tf1.get_variable('b', []))
    assert placement.are_in_tasks(variables)


@pytest.mark.parametrize('message, is_explained', [
    ('Cannot colocate nodes {{a/else/_1/Read}} and {{b}}: Cannot merge devices '
     'with incompatible jobs: x and y', True),
    ('Cannot colocate nodes {{a}} and {{b}}: Cannot merge devices with '
     'incompatible jobs: x and y', False),
    ('Incompatible shapes', False)])
def test_only_conditions_are_explained(message, is_explained):
  error = tf.errors.InvalidArgumentError(None, None, message)
  with pytest.raises(RuntimeError if is_explained else type(error)) as raised:
    with placement.conditions_explained():
      raise error
  assert message in str(raised.value)
  assert ('`allow_soft_placement' in str(raised.value)) == is_explained


@pytest.mark.parametrize('is_reference', [False, True])
def test_it_is_local_and_has_its_full_name(behavior, is_reference):
  with tf.Graph().as_default(), tf1.device('/job:ps'), tf1.name_scope('scope'):
    variable = placement.worker_variable(
        lambda: tf.constant(2.0), 'mine', '/job:worker', is_reference)
    assert (variable.op.name, variable.device) == ('mine', '/job:worker')
    assert tf1.local_variables() == [variable]
    assert not tf1.global_variables() and not tf1.trainable_variables()
    assert (variable.dtype != variable.dtype.base_dtype) is is_reference


def test_a_branch_makes_it_outside_and_no_creator_sees_it(behavior):
  made = []

  def create(next_creator, **kwargs):
    made.append(kwargs['name'])
    return next_creator(**kwargs)

  def branch():
    made.append(placement.worker_variable(lambda: tf.constant(2.0), 'v', ''))
    return tf.constant(True)

  with tf.Graph().as_default() as graph, tf.variable_creator_scope(create):
    tf.cond(tf1.placeholder(tf.bool, []), branch, lambda: False)
    assert [v.graph for v in made[:1]] == [graph]
    assert len(made) == len(tf1.local_variables()) == 1
    with tf1.Session() as session:
      session.run(tf1.local_variables_initializer())
      assert session.run(made[0]) == 2.0


def test_counts_without_an_initialiser(behavior):
  with tf.Graph().as_default():
    counter = placement.WorkerCounter('count')
    increment, value = counter.increment(), counter.value()
    with tf1.Session() as session:
      assert session.run(value) == 0
      session.run(increment)
      session.run(increment)
      assert session.run(value) == 2
      session.run(tf1.local_variables_initializer())
      assert session.run(value) == 0
    assert tf1.local_variables() == [counter.variable]
    assert not tf1.global_variables()


def test_no_session_waits_for_a_counter(behavior):
  """A program's `local_init_op` may be older than the counter."""
  with tf.Graph().as_default():
    scaffold = tf1.train.Scaffold(local_init_op=tf.no_op())
    increment = placement.WorkerCounter('count').increment()
    with tf1.train.MonitoredSession(
        tf1.train.ChiefSessionCreator(scaffold)) as session:
      assert [session.run(increment) for _ in range(2)] == [1, 2]


def test_sits_on_the_worker_whatever_a_setter_says(behavior):
  with tf.Graph().as_default():
    with tf1.device(tf1.train.replica_device_setter(ps_tasks=1)):
      counter = placement.WorkerCounter('count', '/job:worker/task:3')
    assert counter.variable.device == '/job:worker/task:3'


def test_counts_beyond_the_floats():
  counter = placement.WorkerCounter('count')
  counter.variable.assign(2**24)
  counter.increment()
  assert int(counter.value()) == 2**24 + 1
