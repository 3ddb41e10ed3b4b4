# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a worker's wait for the chief's initialisation."""

import json
import threading

import pytest
import tensorflow as tf

from tfplugin.bin.processes import ports
from tfplugin.checkpoints import run_mark
from tfplugin.hooks import contact_hooks

tf1 = tf.compat.v1


@pytest.fixture
def cluster():
  """Addresses of a chief, a worker and a ps, with worker and ps running."""
  addresses = ports.make_cluster(1, 1)
  servers = [tf.distribute.Server(addresses, job_name=job, task_index=0)
             for job in ('ps', 'worker')]
  yield addresses
  del servers


def _hook(monkeypatch, cluster, task_type='worker', **kwargs):
  monkeypatch.setenv('TF_CONFIG', json.dumps(
      {'cluster': cluster, 'task': {'type': task_type, 'index': 0}}))
  config = tf.estimator.RunConfig()
  return contact_hooks.WaitForChiefHook(config, **kwargs)


def _variable():
  with tf1.device('/job:ps/task:0'):
    return tf1.get_variable('weight', initializer=3.0)


def test_the_error_names_the_chief_and_the_variables(
    behavior, monkeypatch, cluster):
  # Time enough for one look on a loaded machine.
  hook = _hook(monkeypatch, cluster, time_limit_secs=3.0)
  with tf.Graph().as_default():
    _variable()
    with pytest.raises(TimeoutError, match=(
        'worker:0 waited 3 s for chief:0.*no value yet: weight')):
      hook.begin()


def _write_mark(cluster, number):
  """Writes the mark of a run, as the chief's guard does."""
  with tf.Graph().as_default():
    mark = run_mark.RunMark([_variable()])
    with tf1.Session(f'grpc://{cluster["ps"][0]}', config=tf1.ConfigProto(
        device_filters=['/job:ps'])) as session:
      mark.write(session, number)


def _initialise(cluster):
  with tf.Graph().as_default():
    variable = _variable()
    with tf1.Session(f'grpc://{cluster["ps"][0]}', config=tf1.ConfigProto(
        device_filters=['/job:ps'])) as session:
      session.run(variable.initializer)


def test_it_waits_until_the_chiefs_init_fn_has_ended(
    behavior, monkeypatch, cluster):
  _initialise(cluster)
  _write_mark(cluster, -5)
  hook = _hook(monkeypatch, cluster, time_limit_secs=3.0)
  with tf.Graph().as_default():
    _variable()
    with pytest.raises(TimeoutError, match=(
        'worker:0 waited 3 s for chief:0.*its `init_fn` has not ended')):
      hook.begin()
  chief = threading.Timer(0.5, _write_mark, [cluster, 5])
  chief.start()
  with tf.Graph().as_default():
    _variable()
    hook.begin()
  assert chief.finished.is_set()
  chief.join()


class _Makes(tf1.train.SessionRunHook):
  """Makes a variable when it begins, as TensorFlow's early stopping does."""

  def begin(self):
    with tf1.device('/job:ps/task:0'):
      self.variable = tf1.get_variable('flag', initializer=2.0)


def _wait_for_session(cluster, hook):
  """Returns the value of a later hook's variable in the worker's session."""
  made = _Makes()
  with tf1.train.MonitoredSession(tf1.train.WorkerSessionCreator(
      master=f'grpc://{cluster["worker"][0]}', config=tf1.ConfigProto(
          device_filters=['/job:ps', '/job:worker']), max_wait_secs=20),
                                  [hook, made]) as session:
    return session.run(made.variable)


def test_it_waits_for_a_variable_of_a_later_hook(
    behavior, monkeypatch, cluster):
  _initialise(cluster)
  hook = _hook(monkeypatch, cluster, time_limit_secs=15.0)

  def initialise_flag():
    with tf.Graph().as_default():
      made = _Makes()
      made.begin()
      with tf1.Session(f'grpc://{cluster["ps"][0]}', config=tf1.ConfigProto(
          device_filters=['/job:ps'])) as session:
        session.run(made.variable.initializer)

  chief = threading.Timer(1.5, initialise_flag)
  chief.start()
  with tf.Graph().as_default():
    _variable()
    # TensorFlow alone gives up: it would look again after 30 s.
    assert _wait_for_session(cluster, hook) == 2.0
  assert chief.finished.is_set()
  chief.join()


def test_a_variable_that_no_hook_of_the_chief_makes_is_named(
    behavior, monkeypatch, cluster):
  _initialise(cluster)
  hook = _hook(monkeypatch, cluster, time_limit_secs=3.0)
  with tf.Graph().as_default():
    _variable()
    with pytest.raises(TimeoutError, match=(
        'worker:0 waited 3 s for chief:0 .*no value yet: flag. See its log. If '
        'it does not make these variables, give it the hook that makes them')):
      _wait_for_session(cluster, hook)


def test_it_goes_on_when_the_chief_has_initialised(
    behavior, monkeypatch, cluster):
  hook = _hook(monkeypatch, cluster, time_limit_secs=30.0)

  # Without a guard, nor a mark.
  chief = threading.Timer(0.5, _initialise, [cluster])
  chief.start()
  with tf.Graph().as_default():
    variable = _variable()
    hook.begin()
    config = tf1.ConfigProto(device_filters=['/job:ps', '/job:worker'])
    target = f'grpc://{cluster["worker"][0]}'
    with tf1.Session(target, config=config) as session:
      assert session.run(variable) == 3.0
  chief.join()


def test_it_looks_often_before_a_later_session_too(
    behavior, monkeypatch, cluster):
  hook = _hook(monkeypatch, cluster, time_limit_secs=30.0)
  ps, worker = (f'grpc://{cluster[job][0]}' for job in ('ps', 'worker'))
  with tf.Graph().as_default() as graph:
    with tf1.device('/job:ps/task:0'):
      variable = tf1.get_variable('weight', initializer=3.0, use_resource=True)
      forget = tf.raw_ops.DestroyResourceOp(resource=variable.handle)
    config = tf1.ConfigProto(device_filters=['/job:ps'])

    def run_on_server(op):
      with tf1.Session(ps, graph, config) as session:
        session.run(op)

    run_on_server(variable.initializer)
    hook.begin()
    run_on_server(forget)  # As a ps does that is started again.
    chief = threading.Timer(0.5, run_on_server, [variable.initializer])
    chief.start()
    # TensorFlow alone gives up: it would look again after 30 s.
    manager = tf1.train.SessionManager(
        ready_op=tf1.report_uninitialized_variables())
    session = manager.wait_for_session(worker, tf1.ConfigProto(
        device_filters=['/job:ps', '/job:worker']), max_wait_secs=20.0)
    assert session.run(variable) == 3.0
    session.close()
  chief.join()


@pytest.mark.parametrize('task_type', ['chief', 'ps'])
def test_only_a_worker_waits(monkeypatch, task_type):
  # Nothing listens there.
  hook = _hook(monkeypatch, ports.make_cluster(1, 1), task_type)
  with tf.Graph().as_default():
    _variable()
    hook.begin()


def test_a_ps_that_does_not_answer_is_named(monkeypatch):
  hook = _hook(monkeypatch, ports.make_cluster(1, 1), time_limit_secs=0.5)
  with tf.Graph().as_default():
    _variable()
    with pytest.raises(TimeoutError, match='not reach every parameter'):
      hook.begin()


def test_a_limit_has_to_be_positive():
  with pytest.raises(ValueError, match='`time_limit_secs` must be positive'):
    contact_hooks.WaitForChiefHook(tf.estimator.RunConfig(), -1.0)
