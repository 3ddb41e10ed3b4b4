# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of values for a parameter server that has lost its variables."""

import pytest
import tensorflow as tf

from tfplugin.bin.processes import ports
from tfplugin.checkpoints import lost_variables
from tfplugin.distribute import per_graph

tf1 = tf.compat.v1


class _Graph:
  """Centre, step and counter on a ps, and a copy on the chief.

  Each variable has a container, which a test clears as a ps loses variables.
  """

  def __init__(self, target, has_copy=True):
    self._target = target
    with tf1.device('/job:ps/task:0/cpu:0'):
      self.step = self._variable('step', tf.constant(0, tf.int64))
      self.center = self._variable('center', 1.0)
      self.counter = self._variable('counter', tf.constant(0))
    with tf1.device('/job:chief/task:0/cpu:0'):
      self.copy = self._variable('copy', 2.0)
    if has_copy:
      per_graph.current().copies['center'] = self.center, self.copy
    self.servers = [self.step, self.center, self.counter]
    self.lost = lost_variables.LostVariables(self.servers, self.step)
    self._missing = tf1.report_uninitialized_variables(self.servers)
    self._saver = tf1.train.Saver(self.servers)
    self._initialize = tf1.global_variables_initializer()
    self.session = tf1.Session(target)
    self.session.run(self._initialize)

  def _variable(self, name, value):
    with tf1.get_default_graph().container(name):
      return tf1.get_variable(name, initializer=value, trainable=False)

  def save(self, directory):
    self._saver.save(self.session, str(directory / 'model.ckpt'), 7)

  def lose(self, *names):
    tf1.Session.reset(self._target, names)
    self.session = tf1.Session(self._target)

  def give_back(self, directory):
    missing = [name.decode() for name in self.session.run(self._missing)]
    return self.lost.give_back(
        'chief:0', self.session, missing, str(directory))

  def values(self):
    return self.session.run([v.read_value() for v in self.servers])


@pytest.fixture(name='target')
def _target():
  addresses = ports.make_cluster(0, 1)
  servers = [tf.distribute.Server(addresses, job_name=job, task_index=0)
             for job in ('ps', 'chief')]
  yield servers[1].target
  del servers


def _set(graph, variable, value):
  graph.session.run(variable.initializer,
                    {variable.initializer.inputs[1]: value})


def test_a_centre_from_the_copy_the_step_as_seen_and_others_from_the_checkpoint(
    behavior, target, tmp_path):
  with tf.Graph().as_default():
    graph = _Graph(target)
    _set(graph, graph.counter, 3)
    graph.save(tmp_path)
    for variable, value in ((graph.step, 9), (graph.center, 5.0),
                            (graph.counter, 4), (graph.copy, 6.0)):
      _set(graph, variable, value)
    graph.lost.last_step = 8
    graph.lose('step', 'center', 'counter')
    assert graph.give_back(tmp_path)
    assert graph.values() == [8, 6.0, 3]


def test_a_living_server_keeps_its_variables(behavior, target, tmp_path):
  with tf.Graph().as_default():
    graph = _Graph(target)
    graph.save(tmp_path)
    _set(graph, graph.step, 9)
    _set(graph, graph.counter, 4)
    graph.lost.last_step = 8
    graph.lose('center')
    assert graph.give_back(tmp_path)
    assert graph.values() == [9, 2.0, 4]


def test_an_unknown_step_is_that_of_the_checkpoint(behavior, target, tmp_path):
  with tf.Graph().as_default():
    graph = _Graph(target)
    _set(graph, graph.step, 7)
    graph.save(tmp_path)
    graph.lose('step')
    assert graph.give_back(tmp_path)
    assert graph.values() == [7, 1.0, 0]


@pytest.mark.parametrize('lost, has_copy, is_saved', [
    (('step', 'center'), False, True),         # Not elastic averaging.
    (('center', 'copy'), True, True),          # The chief is new, too.
    (('center', 'counter'), True, False)],     # No checkpoint has the counter.
                         ids=['no copies', 'a new chief', 'no checkpoint'])
def test_otherwise_nothing_is_given(behavior, target, tmp_path, lost, has_copy,
                                    is_saved):
  with tf.Graph().as_default():
    graph = _Graph(target, has_copy)
    if is_saved:
      graph.save(tmp_path)
    graph.lost.last_step = 8
    graph.lose(*lost)
    assert not graph.give_back(tmp_path)
    with pytest.raises(tf.errors.FailedPreconditionError):
      graph.values()
