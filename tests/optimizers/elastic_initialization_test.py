# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of pretrained weights with an ElasticAverageOptimizer by hand."""

import threading

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin.testing import clusters

tf1 = tf.compat.v1


class _Write(tf1.train.SessionRunHook):
  """Writes 5 to a variable when a session is there."""

  def __init__(self, assign, value, before=lambda: None):
    self.assign, self.value, self.before = assign, value, before

  def after_create_session(self, session, coord):
    self.before()
    session.run(self.assign, {self.value: [5.0, 5.0]})


class _Model:
  """A worker's graph; no gradient, so that nothing but writes shows."""

  def __init__(self, num_worker=1, index=0, cluster=None):
    self.cluster, self.index, self.graph = cluster, index, tf.Graph()
    setter = cluster.device_setter(index) if cluster else None
    with self.graph.as_default(), tf1.device(setter):
      getter = tfplugin.ElasticAverageCustomGetter(
          f'/job:worker/task:{index}' if cluster else '')
      with getter.scope():
        self.w = tf1.get_variable('w', [2], initializer=(
            tf1.random_uniform_initializer()))
        self.rate = tf1.get_variable('rate', initializer=1.0, trainable=False)
        self.mean = tf1.get_variable('mean', initializer=0.0, trainable=False)
      data = tf1.placeholder_with_default(2.0, [], 'data')
      tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, self.mean.assign(data))
      self.optimizer = tfplugin.ElasticAverageOptimizer(
          tf1.train.GradientDescentOptimizer(self.rate), num_worker, getter,
          communication_period=1, moving_rate=0.25, rho=0.0)
      with tf1.control_dependencies(
          tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        self.train = self.optimizer.minimize(
            tf.reduce_sum(self.w) * 0.0 * data, tf1.train.create_global_step())
      self.centers = {pair.local.op.name: pair.center for pair in getter.pairs}
      self.hook = self.optimizer.make_session_run_hook(not index, index)
      self.value = tf1.placeholder(tf.float32, [2])
      self.assign = self.w.assign(self.value)
      self.set_rate = tf.group(self.rate.assign(0.5))

  def session(self, hooks, scaffold=None):
    with self.graph.as_default():
      return tf1.train.MonitoredTrainingSession(
          self.cluster.target('worker', self.index) if self.cluster else '',
          is_chief=not self.index, hooks=hooks, scaffold=scaffold,
          save_checkpoint_secs=None, save_summaries_steps=None,
          log_step_count_steps=None, max_wait_secs=60)


@pytest.mark.parametrize('where', ['init_fn', 'hook before', 'hook after'])
@pytest.mark.parametrize('writer', ['fed', 'saver'])
def test_what_is_written_before_the_first_step_is_everywhere(
    where, writer, tmp_path, behavior):
  del behavior
  model = _Model()
  write = _Write(model.assign, model.value)
  if writer == 'saver':
    with tf.Graph().as_default(), tf1.Session() as session:
      w = tf1.get_variable('w', initializer=[5.0, 5.0])
      session.run(w.initializer)
      path = tf1.train.Saver([w]).save(session, str(tmp_path / 'pretrained'))
    with model.graph.as_default():
      saver = tf1.train.Saver([model.w])
    write.after_create_session = lambda session, coord: saver.restore(
        session, path)
  scaffold = None
  if where == 'init_fn':
    scaffold = tf1.train.Scaffold(
        init_fn=lambda scaffold, session: write.after_create_session(
            session, None))
  hooks = {'init_fn': [model.hook], 'hook before': [write, model.hook],
           'hook after': [model.hook, write]}[where]
  with model.session(hooks, scaffold) as session:
    for _ in range(2):
      session.run(model.train)
    values = session.run([model.w, model.centers['w']])
  np.testing.assert_array_equal(values, np.full_like(values, 5.0))


@pytest.mark.parametrize('also', ['nothing', 'local', 'ready', 'rows'])
def test_what_an_init_op_writes_is_everywhere(also, behavior):
  """Of a Scaffold, beside what it has besides, or runs besides."""
  del behavior
  model = _Model()
  with model.graph.as_default():
    before, fields = [tf1.global_variables_initializer()], {}
    if also == 'local':
      before.append(tf1.local_variables_initializer())
    if also == 'ready':
      fields = {'ready_for_local_init_op': tf.constant([], tf.string)}
    if also == 'rows':
      add = model.w.assign_add([0.0, 1.0])
      fields = {'init_fn': lambda scaffold, session: session.run(add)}
    with tf1.control_dependencies(before):
      init_op = model.w.assign([5.0, 5.0])
    scaffold = tf1.train.Scaffold(init_op=init_op, **fields)
  with model.session([model.hook], scaffold) as session:
    for _ in range(2):
      session.run(model.train)
    values, rates = session.run([[model.w, model.centers['w']],
                                 [model.rate, model.centers['rate']]])
  np.testing.assert_array_equal(
      values, [[5.0, 5.0 + (also == 'rows')]] * 2)
  assert rates == [1.0, 1.0]


@pytest.mark.parametrize('also', ['nothing', 'ready'])
def test_an_init_fn_changes_the_first_values(also, behavior):
  del behavior
  model = _Model()
  with model.graph.as_default():
    double = model.rate.assign(2.0 * model.rate)
    fields = {'ready_for_local_init_op': tf.constant([], tf.string)} if (
        also == 'ready') else {}
    scaffold = tf1.train.Scaffold(
        init_fn=lambda scaffold, session: session.run(double), **fields)
  with model.session([model.hook], scaffold) as session:
    session.run(model.train)
    rates = session.run([model.rate, model.centers['rate']])
    copy, center = session.run([model.w, model.centers['w']])
  assert rates == [2.0, 2.0]
  np.testing.assert_array_equal(copy, center)


def test_a_restored_session_keeps_the_centers(tmp_path, behavior):
  """Nothing is handed on; the copies of the old session are not either."""
  del behavior

  def train(init_fn, num_steps):
    model = _Model()
    with model.graph.as_default():
      scaffold = tf1.train.Scaffold(
          saver=model.optimizer.swapping_saver(),
          init_fn=lambda scaffold, session: init_fn(model, session))
      with tf1.train.MonitoredTrainingSession(
          hooks=[model.hook], scaffold=scaffold, checkpoint_dir=str(tmp_path),
          save_checkpoint_steps=1, save_summaries_steps=None,
          log_step_count_steps=None) as session:
        for _ in range(num_steps):
          session.run(model.train)
        return session.run([model.w, model.centers['w']])

  train(lambda model, session: session.run(
      model.assign, {model.value: [5.0, 5.0]}), 2)
  values = train(lambda model, session: pytest.fail('not restored'), 1)
  np.testing.assert_array_equal(values, np.full_like(values, 5.0))


def test_what_is_written_later_is_a_copys_alone_and_is_averaged(behavior):
  del behavior
  model = _Model()
  with model.session([model.hook]) as session:
    session.run(model.train)
    center = session.run(model.centers['w'])
    session.run(model.assign, {model.value: [5.0, 5.0]})
    session.run(model.train)
    values = session.run([model.w, model.centers['w']])
  moved = 0.25 * (5.0 - center)
  np.testing.assert_allclose(values, [5.0 - moved, center + moved], rtol=1e-6)


def test_a_hook_that_trains_before_the_first_step_writes_no_first_value(
    behavior):
  del behavior
  model = _Model()
  with model.graph.as_default():
    getter = model.optimizer._getter
    with getter.scope():
      v = tf1.get_variable('v', initializer=8.0)
    train = model.optimizer.minimize(v * v, var_list=[v])
    centers = {pair.local.op.name: pair.center for pair in getter.pairs}

  class Trains(tf1.train.SessionRunHook):

    def before_run(self, run_context):
      run_context.session.run(train)

  with model.graph.as_default():
    hook = model.optimizer.make_session_run_hook(True, 0)
  with model.session([Trains(), hook]) as session:
    values = session.run([v, centers['v']])
  # A rate of 1: from 8 to -8, and a quarter of the difference moves.
  assert values == [-4.0, 4.0]


def test_without_a_write_a_copy_starts_from_the_center(behavior, caplog):
  del behavior
  model = _Model()
  caplog.set_level('INFO', 'tensorflow')
  with model.session([model.hook]) as session:
    session.run(model.train)
    copy, center = session.run([model.w, model.centers['w']])
  np.testing.assert_array_equal(copy, center)
  line, = (r.getMessage() for r in caplog.records
           if r.getMessage().startswith('Elastic averaging: '))
  assert line.startswith(
      'Elastic averaging: trained and averaged: global_center_variable/w; '
      'statistics, averaged: global_center_variable/mean; '
      'shared: global_center_variable/rate, global_step;')


def test_a_worker_waits_for_the_hooks_of_the_chief(behavior):
  """The chief's hook writes when the worker has a session."""
  del behavior
  cluster = clusters.in_process_cluster(2)
  chief, worker = (_Model(2, index, cluster) for index in range(2))
  begins = threading.Event()
  seen = []

  class Begins(tf1.train.SessionRunHook):

    def after_create_session(self, session, coord):
      begins.set()

  def work():
    with worker.session([Begins(), worker.hook]) as session:
      seen.append(session.run([worker.w, worker.centers['w']]))

  thread = threading.Thread(target=work, daemon=True)

  def start_worker():
    thread.start()
    assert begins.wait(60)

  with chief.session([_Write(chief.assign, chief.value, start_worker),
                      chief.hook]) as session:
    session.run(chief.train)
    thread.join(60)
  np.testing.assert_array_equal(seen, np.full([1, 2, 2], 5.0))


def test_what_is_set_is_shared_and_a_statistic_averaged(behavior):
  del behavior
  cluster = clusters.in_process_cluster(2)
  chief, worker = (_Model(2, index, cluster) for index in range(2))
  with chief.session([chief.hook]) as first:
    with worker.session([worker.hook]) as second:
      first.run(chief.set_rate)
      first.run(chief.train)
      assert first.run([chief.rate, chief.centers['rate']]) == [0.5, 0.5]
      assert second.run(worker.rate) == 1.0
      second.run(worker.train)
      assert second.run([worker.rate, worker.centers['rate']]) == [0.5, 0.5]
      # Of 2 and 0, then 2 and .5: a quarter of the difference moves.
      assert second.run(worker.centers['mean']) == 0.5 + 0.375


@pytest.mark.parametrize('start, rate', [
    (lambda source: tf1.train.init_from_checkpoint(source, {'/': '/'}), 0.5),
    (tf1.train.warm_start, 1.0)],  # Of trained variables.
                         ids=['init_from_checkpoint', 'warm_start'])
def test_a_warm_start_of_either_kind_of_variable_is_everywhere(
    start, rate, tmp_path, behavior):
  """With reference variables the hook failed at its beginning."""
  del behavior
  source = str(tmp_path / 'model.ckpt')
  with tf.Graph().as_default(), tf1.Session() as session:
    saved = [tf1.get_variable('w', initializer=[5.0, 6.0]),
             tf1.get_variable('rate', initializer=0.5)]
    session.run(tf1.global_variables_initializer())
    tf1.train.Saver(saved).save(session, source)
  with tf.Graph().as_default():
    getter = tfplugin.ElasticAverageCustomGetter('')
    with getter.scope():
      w = tf1.get_variable('w', initializer=[0.0, 0.0])
      tf1.get_variable('rate', initializer=1.0, trainable=False)
    start(source)
    optimizer = tfplugin.ElasticAverageOptimizer(
        tf1.train.GradientDescentOptimizer(1.0), 1, getter,
        communication_period=2, moving_rate=0.25, rho=0.0)
    train_op = optimizer.minimize(-tf.reduce_sum(w))
    values = [v for pair in getter.pairs for v in (pair.local, pair.center)]
    with tf1.train.MonitoredSession(
        hooks=[optimizer.make_session_run_hook(True, 0)]) as session:

      def read(step_context):
        return step_context.session.run(values)

      np.testing.assert_array_equal(
          np.hstack(session.run_step_fn(read)), [5, 6, 5, 6, rate, rate])
      for _ in range(2):
        session.run(train_op)
      np.testing.assert_array_equal(
          np.hstack(session.run_step_fn(read)),
          [6.5, 7.5, 5.5, 6.5, rate, rate])


@pytest.mark.parametrize('resource', [True, False])
def test_a_copy_starts_from_the_centre_without_an_optimizer(
    behavior, resource, tmp_path):
  del behavior

  def build():
    getter = tfplugin.ElasticAverageCustomGetter('')
    with tf1.variable_scope('', custom_getter=getter, use_resource=resource):
      w = tf1.get_variable('w', initializer=3.0)
    return w, getter.pair_of(w).center

  with tf.Graph().as_default(), tf1.Session() as session:
    w, center = build()
    session.run([tf1.global_variables_initializer(),
                 tf1.local_variables_initializer()])
    assert session.run([w.read_value(), center.read_value()]) == [3.0, 3.0]
    session.run(center.assign(5.0))
    path = tf1.train.Saver().save(session, str(tmp_path / 'model'))
  with tf.Graph().as_default():
    w, _ = build()
    value = w.read_value()
    creator = tf1.train.ChiefSessionCreator(checkpoint_filename_with_path=path)
    with tf1.train.MonitoredSession(creator) as session:
      assert session.run(value) == 5.0
