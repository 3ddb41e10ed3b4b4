# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Communications in a smaller type: the rule, its sum, its bytes."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import decorated_models
from tests.helpers import strategy_worker
from tests.optimizers import elastic_graphs
from tfplugin import estimator
from tfplugin.distribute.elastic import elastic_average_strategy
from tfplugin.testing import clusters

tf1 = tf.compat.v1

TYPES = ['float16', 'bfloat16', 'int8']
SIZE = 300
START = np.random.RandomState(0).randn(SIZE).astype(np.float32)
TARGETS = np.random.RandomState(1).randn(2, SIZE).astype(np.float32)
RATE, MOVING_RATE = 0.25, 0.125


def _blocks(value, dither, keeps_zero):
  """What arrives of a float32 vector as int8, in numpy."""
  result = []
  for start in range(0, value.size, 256):
    block = value[start:start + 256].astype(np.float32)
    middle = np.float32(0) if keeps_zero else (block.min() + block.max()) / 2
    step = (np.abs(block).max() if keeps_zero else
            middle - block.min()) / np.float32(127)
    codes = np.floor((block - middle) / (step or 1) + np.float32(dither))
    result.append(middle + np.clip(codes, -127, 127) * step)
  return np.concatenate(result).astype(np.float32)


def _half(value, dtype):
  """The same of a half."""
  return value.astype(tf.as_dtype(dtype).as_numpy_dtype).astype(np.float32)


class Rule:
  """Two workers and a centre, as docs/exchange.md has the equations."""

  def __init__(self, dtype, period):
    self.dtype, self.period = dtype, period
    self.rate = np.float32(MOVING_RATE)
    self.center = START.copy()
    self.copies = [START.copy(), START.copy()]
    self.feedbacks = [np.zeros_like(START), np.zeros_like(START)]
    self.steps = [0, 0]

  def step(self, worker):
    copy = self.copies[worker]
    copy -= np.float32(RATE) * (copy - TARGETS[worker])
    self.steps[worker] += 1
    if self.steps[worker] % self.period:
      return
    if self.dtype != 'int8':
      seen = _half(self.center, self.dtype)
      difference = _half(self.rate * (copy - seen), self.dtype)
      copy -= difference
      self.center += difference
      return
    number = (self.steps[worker] - 1) // self.period
    seen = _blocks(
        self.center, (number * 633 % 1024 + 0.5) / 1024, False)
    difference = self.rate * (copy - seen)
    owed = difference + self.feedbacks[worker]
    arrives = _blocks(owed, 0.5, True)
    copy -= difference
    self.center += arrives
    self.feedbacks[worker] = owed - arrives


def model_fn(features, labels, mode, target=TARGETS[0]):
  del features, labels
  w = tf1.get_variable('w', initializer=START)
  loss = tf.reduce_sum(tf.square(w - target)) / 2
  train_op = elastic_graphs.sgd(RATE).minimize(
      loss, tf1.train.get_global_step())
  return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


@pytest.fixture(scope='module', name='cluster')
def fixture_cluster():
  return clusters.in_process_cluster(num_workers=2)


def _worker(fn, cluster=None, index=0, **settings):
  """A worker of `cluster`, or a process alone, stepped by hand."""
  resolver = cluster and tf.distribute.cluster_resolver.SimpleClusterResolver(
      cluster.cluster_spec, task_type='worker', task_id=index)
  return strategy_worker.StrategyWorker(
      elastic_average_strategy.ElasticAverageStrategy(
          resolver, moving_rate=MOVING_RATE, **settings),
      fn, cluster.target('worker', index) if cluster else '',
      is_chief=index == 0)


def _two_workers(cluster, **settings):
  return [_worker(functools.partial(model_fn, target=target), cluster, index,
                  **settings) for index, target in enumerate(TARGETS)]


@pytest.mark.parametrize('dtype', TYPES)
@pytest.mark.parametrize('period', [1, 2])
def test_two_workers_equal_numpy(cluster, dtype, period):
  rule = Rule(dtype, period)
  workers = _two_workers(
      cluster, exchange_dtype=dtype, communication_period=period)
  for index in (0, 0, 1, 0, 1, 1, 1, 0):
    workers[index].step()
    rule.step(index)
    # A value at the border of two codes may get the other one: a step of the
    # differences at most, of the few that are there.
    for found, expected in (
        (workers[index].value('w'), rule.copies[index]),
        (workers[index].center('w'), rule.center)):
      near = np.isclose(found, expected, rtol=1e-5, atol=1e-6)
      assert near.mean() > 0.97
      np.testing.assert_allclose(found, expected, atol=0.02)


@pytest.mark.parametrize('dtype', [None, *TYPES])
def test_sum_of_copies_centre_and_feedbacks_stays(cluster, dtype):
  """What a copy gives, the centre has, or is going to get."""
  workers = _two_workers(
      cluster, exchange_dtype=dtype, communication_period=1)
  late, last = 0.0, None
  for turn in range(30):
    worker = workers[turn % 2]
    before = np.float64(worker.value('w'))
    worker.step()
    moved = before - RATE * (before - TARGETS[turn % 2])
    after = np.float64(worker.value('w'))
    given = moved - after
    center = np.float64(worker.center('w'))
    owed = sum(np.float64(w.value('exchange_feedback/w')) for w in workers
               ) if dtype == 'int8' else 0.0
    whole = center + owed
    if last is not None:
      # Four additions, of values of up to 4, are rounded.
      np.testing.assert_allclose(whole - last, given, atol=4 * 4 * 2.0 ** -24)
      late = max(late, np.abs(owed).max())
    last = whole
  # The feedback had something to do, and holds no more than two halves of a
  # step: rates of 1 / 8 of distances below 5.
  assert (late > 0) == (dtype == 'int8') and late < 5 / 8 / 127


def _sent(worker):
  """Bytes of tensors that a step sends, by the job that they come from."""
  metadata = tf1.RunMetadata()
  worker.session.run(
      worker.spec.train_op, run_metadata=metadata,
      options=tf1.RunOptions(output_partition_graphs=True))
  sent = {}
  for graph in metadata.partition_graphs:
    for node in graph.node:
      if node.op not in ('_Send', '_HostSend') or 'ctrl' in node.input[0]:
        continue  # A bare signal is no tensor of the graph.
      # What a branch returns is named after it and its output.
      name = re.sub(r'/output/_\d+$', '', node.input[0])
      tensor = worker.graph.get_operation_by_name(name).outputs[0]
      assert tensor.dtype.as_datatype_enum == node.attr['T'].type
      job = node.attr['send_device'].s.decode().split('/')[1]
      sent[job] = sent.get(job, 0) + (
          tensor.shape.num_elements() * tensor.dtype.size)
  return sent


def _model_of_two(features, labels, mode):
  del features, labels
  table = tf1.get_variable('table', [512, 64])
  bias = tf1.get_variable('bias', [300])
  loss = tf.reduce_sum(table) + tf.reduce_sum(bias)
  train_op = elastic_graphs.sgd(RATE).minimize(
      loss, tf1.train.get_global_step())
  return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


@pytest.mark.parametrize('dtype, expected, most', [
    (None, 4, 1.0), ('float16', 2, 0.51), ('bfloat16', 2, 0.51),
    ('int8', 1, 0.27)])
def test_bytes_between_worker_and_server(cluster, dtype, expected, most):
  worker = _worker(_model_of_two, cluster, exchange_dtype=dtype,
                   communication_period=1)
  sent = _sent(worker)
  count = 512 * 64 + 300
  # 128 blocks and 2; the centre's dither goes to the server.
  headers = 8 * (128 + 2) if dtype == 'int8' else 0
  assert sent == {'job:ps': expected * count + headers,
                  'job:worker': expected * count + headers + (
                      4 if dtype == 'int8' else 0)}
  assert sum(sent.values()) <= most * 2 * 4 * count


@pytest.mark.parametrize('dtype', TYPES)
def test_only_touched_rows_are_exchanged(behavior, dtype):
  del behavior

  def embedding(features, labels, mode):
    del features, labels
    table = tf1.get_variable('table', initializer=np.zeros([4, 2], np.float32))
    loss = tf.reduce_sum(tf.gather(table, [1, 3]) * [[1.0], [-0.5]])
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, train_op=elastic_graphs.sgd().minimize(
            loss, tf1.train.get_global_step()))

  worker = _worker(embedding, exchange_dtype=dtype, sparse_exchange=True,
                   communication_period=1)
  worker.step()
  # d = 1 / 8 of -1 and .5; in int8 to a step of 1 / 8 / 127.
  center = [[0, 0], [-0.125, -0.125], [0, 0], [0.0625, 0.0625]]
  np.testing.assert_allclose(worker.center('table'), center, atol=0.0005)
  np.testing.assert_allclose(
      worker.value('table') + worker.center('table') + (
          worker.value('exchange_feedback/table') if dtype == 'int8' else 0),
      [[0, 0], [-1, -1], [0, 0], [0.5, 0.5]], atol=1e-7)


def _optimizer_trajectory(**settings):
  with tf.Graph().as_default():
    getter = elastic_graphs.Getter('')
    w = elastic_graphs.variable(getter, value=START, use_resource=True)
    optimizer = elastic_graphs.make_optimizer(
        getter, elastic_graphs.sgd(RATE), moving_rate=MOVING_RATE,
        communication_period=2, **settings)
    train = optimizer.minimize(tf.reduce_sum(tf.square(w - TARGETS[0])) / 2)
    with elastic_graphs.session(optimizer) as session:
      session.run([v.initializer for v in optimizer.variables()])
      for _ in range(4):
        session.run(train)
      return session.run([w, getter.pairs[0].center])


def _decorator_trajectory(**settings):
  values = decorated_models.train(estimator.elastic_average(
      model_fn, communication_period=2, moving_rate=MOVING_RATE, **settings), 4)
  return values['w'], values['global_center_variable/w']


@pytest.mark.parametrize('dtype', TYPES)
@pytest.mark.parametrize('trajectory', [
    _optimizer_trajectory, _decorator_trajectory],
                         ids=['optimizer', 'decorator'])
def test_each_form_has_the_rule(behavior, dtype, trajectory):
  del behavior
  rule = Rule(dtype, 2)
  for _ in range(4):
    rule.step(0)
  for found, expected in zip(trajectory(exchange_dtype=dtype),
                             (rule.copies[0], rule.center)):
    assert np.isclose(found, expected, rtol=1e-5, atol=1e-6).mean() > 0.97
    np.testing.assert_allclose(found, expected, atol=0.02)


@pytest.mark.parametrize('dtype', [tf.float16, tf.bfloat16])
def test_what_makes_nothing_smaller_is_refused(dtype):
  with tf.Graph().as_default():
    getter = elastic_graphs.Getter('')
    with getter.scope():
      w = tf1.get_variable('w', [2], dtype, use_resource=True)
    optimizer = elastic_graphs.make_optimizer(getter, exchange_dtype='bfloat16')
    with pytest.raises(ValueError, match='`exchange_dtype` must be smaller'):
      optimizer.minimize(tf.reduce_sum(w))


def test_between_devices_of_one_process_it_is_refused():
  with pytest.raises(ValueError, match=(
      '`exchange_dtype` must be None between the devices .*int8')):
    elastic_average_strategy.ElasticAverageStrategy(
        devices=['/cpu:0', '/cpu:1'], exchange_dtype='int8')


def test_a_decorator_that_honours_an_optimizer_says_that_it_does_nothing():

  def own(features, labels, mode):
    del features, labels
    getter = elastic_graphs.Getter('')
    with getter.scope():
      w = tf1.get_variable('w', initializer=START)
    train_op = elastic_graphs.make_optimizer(getter).minimize(
        tf.reduce_sum(w), tf1.train.get_global_step())
    return tf1.estimator.EstimatorSpec(
        mode, loss=tf.constant(0.0), train_op=train_op)

  decorated_models.train(estimator.elastic_average(own), 1)
  with pytest.raises(ValueError, match=(
      '`exchange_dtype` must be None of `elastic_average`.*Pass it to that')):
    decorated_models.train(
        estimator.elastic_average(own, exchange_dtype='int8'), 1)


@pytest.mark.parametrize('on_nonfinite', ['drop', 'apply'])
@pytest.mark.parametrize('dtype', TYPES)
def test_what_is_not_finite_is_seen(dtype, on_nonfinite):
  """A copy with an infinity, by an update that no optimizer made."""

  def broken(features, labels, mode):
    spec = model_fn(features, labels, mode)
    w, = tf1.trainable_variables()
    with tf1.control_dependencies([spec.train_op]):
      return spec._replace(train_op=w.assign(w + np.inf, read_value=False))

  worker = _worker(broken, exchange_dtype=dtype, communication_period=1,
                   on_nonfinite=on_nonfinite)
  worker.step()
  is_finite = np.isfinite(worker.center('w')).all()
  assert is_finite == (on_nonfinite == 'drop')
  if dtype == 'int8':
    feedback = worker.value('exchange_feedback/w')
    assert np.isfinite(feedback).all() == (on_nonfinite == 'drop')


@pytest.mark.parametrize('is_ordered', [True, False])
def test_two_calls_of_a_run_write_the_feedback_once(behavior, is_ordered):
  """Calls that nobody ordered lost feedback, or sent it twice."""
  del behavior
  with tf.Graph().as_default():
    getter = elastic_graphs.Getter('')
    w = elastic_graphs.variable(getter, 'w', START)
    optimizer = elastic_graphs.make_optimizer(
        getter, moving_rate=MOVING_RATE, exchange_dtype='int8')
    gradient = tf1.placeholder(tf.float32, [SIZE])
    trains = [optimizer.apply_gradients([(gradient, w)])]
    with tf1.control_dependencies(trains if is_ordered else []):
      trains.append(optimizer.apply_gradients([(2.0 * gradient, w)]))
    values = [w, elastic_graphs.center(getter, w), getter.pairs[0].feedback]
    with elastic_graphs.session(optimizer) as session:
      for step in range(50):
        before = np.float64(session.run(values))
        each = np.random.RandomState(step).randn(SIZE)
        session.run(trains, {gradient: each})
        after = np.float64(session.run(values))
        np.testing.assert_allclose(
            after.sum(0), before.sum(0) - 3 * each, atol=1e-4)
        # At most half a level is owed: the feedback of one exchange.
        largest = max(np.abs(MOVING_RATE * (
            before[0] - k * each - before[1]) + before[2]).max()
                      for k in (0, 1, 2, 3))
        assert np.abs(after[2]).max() <= 1.05 * largest / 254
