# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables with a centre, the place of both, and refusals of the getter."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.optimizers import elastic_graphs
from tfplugin.optimizers import elastic_average
from tfplugin.optimizers import elastic_custom_getter
from tfplugin.testing import behaviors

tf1 = tf.compat.v1

Getter = elastic_custom_getter.ElasticAverageCustomGetter


def _optimizer(getter, **kwargs):
  arguments = {'opt': tf1.train.GradientDescentOptimizer(0.1), 'num_worker': 2,
               'ea_custom_getter': getter, **kwargs}
  return elastic_average.ElasticAverageOptimizer(**arguments)


def _names(collection):
  return [v.op.name for v in tf1.get_collection(collection)]


def test_collections_and_devices(behavior):
  del behavior
  setter = tf1.train.replica_device_setter(ps_tasks=2)
  with tf.Graph().as_default(), tf1.device(setter):
    getter = Getter('/job:worker/task:3')
    with tf1.variable_scope('a', custom_getter=getter):
      w = tf1.get_variable('w', [2], collections=[
          tf1.GraphKeys.GLOBAL_VARIABLES, 'mine'])
    assert _names('mine') == ['a/w']
    assert _names(tf1.GraphKeys.LOCAL_VARIABLES) == ['a/w']
    assert _names(tf1.GraphKeys.TRAINABLE_VARIABLES) == ['a/w']
    assert _names(tf1.GraphKeys.GLOBAL_VARIABLES) == [
        'global_center_variable/a/w']
    assert w.device == '/job:worker/task:3'
    assert getter.pair_of(w).center.device == '/job:ps/task:0'


def test_keras_layers_and_variables_are_seen(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    with getter.scope():
      tf.keras.layers.Dense(1, name='dense')(tf.ones([1, 2]))
      tf.Variable(2.0, name='v')
    assert [p.center.op.name for p in getter.pairs] == [
        'global_center_variable/dense/kernel',
        'global_center_variable/dense/bias', 'global_center_variable/v']
    _optimizer(getter, rho=0.0).compute_gradients(
        tf.add_n([tf.reduce_sum(p.local) for p in getter.pairs]))


def test_reuse_pairs_once(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    with tf1.variable_scope('s', custom_getter=getter, reuse=tf1.AUTO_REUSE):
      first = tf1.get_variable('w', [2])
      assert tf1.get_variable('w', [2]) is first
    assert len(getter.pairs) == 1


def test_what_has_no_average_is_shared(behavior):
  del behavior
  with tf.Graph().as_default():
    getter = Getter('')
    with getter.scope():
      tf1.train.create_global_step()
      tf1.get_variable('counter', initializer=3, trainable=False)
      tf.Variable(5, name='number')
      tf.Variable(lambda: 7, name='called', trainable=False)
      tf1.get_variable('metric', [], trainable=False, collections=[
          tf1.GraphKeys.LOCAL_VARIABLES])
      tf1.get_variable('mean', [], trainable=False)
    assert [p.local.op.name for p in getter.pairs] == ['mean']
    assert set(_names(tf1.GraphKeys.GLOBAL_VARIABLES)) == {
        'global_step', 'counter', 'number', 'called',
        'global_center_variable/mean'}


@pytest.mark.parametrize('when, names', [
    ('before', ['global_center_variable/w',
                'global_center_variable/w/ExponentialMovingAverage']),
    ('after', ['global_center_variable/w', 'w/ExponentialMovingAverage'])])
def test_what_asks_to_be_beside_a_copy_is_shared_on_a_server(
    behavior, when, names):
  del behavior
  setter = tf1.train.replica_device_setter(ps_tasks=1)
  with tf.Graph().as_default(), tf1.device(setter):
    getter = Getter('/job:worker/task:3')
    with getter.scope():
      w = tf1.get_variable('w', [2])
      average = tf.train.ExponentialMovingAverage(0.5)
      if when == 'before':
        average.apply([w])
      _optimizer(getter, rho=0.0).minimize(tf.reduce_sum(w))
      if when == 'after':
        average.apply([w])
    assert _names(tf1.GraphKeys.GLOBAL_VARIABLES) == names
    assert {v.device for v in tf1.global_variables()} == {'/job:ps/task:0'}
    assert {v.device for v in tf1.local_variables()} == {'/job:worker/task:3'}


def test_statistics_may_be_shared():
  with tf.Graph().as_default():
    getter = Getter('', statistics='shared')
    with getter.scope():
      tf1.get_variable('mean', [], trainable=False)
    assert not getter.pairs
    with pytest.raises(ValueError, match='`statistics` must be one of'):
      Getter('', statistics='none')


def test_regularization_is_counted_once():
  with tf.Graph().as_default():
    with tf1.variable_scope('', custom_getter=Getter('')):
      tf1.get_variable('w', [2], regularizer=tf.nn.l2_loss)
    assert len(tf1.losses.get_regularization_losses()) == 1


def test_variable_made_elsewhere_is_named():
  with tf.Graph().as_default():
    getter = Getter('')
    with getter.scope():
      inside = tf1.get_variable('inside', [])
    outside = tf1.get_variable('outside', [])
    optimizer = _optimizer(getter)
    with pytest.raises(ValueError, match=r"`ea_custom_getter`.*'outside:0'"):
      optimizer.compute_gradients(inside * outside)
    with pytest.raises(ValueError, match='outside:0'):
      optimizer.apply_gradients([(tf.constant(1.0), outside)])
    optimizer.minimize(inside * outside, var_list=[inside])


@pytest.mark.parametrize('argument, value, error', [
    ('opt', tf1.train.AdamOptimizer, TypeError),
    ('num_worker', 0, ValueError), ('num_worker', 1.5, TypeError),
    ('communication_period', -1, ValueError),
    ('communication_period', 2.5, TypeError),
    ('moving_rate', 1.5, ValueError), ('moving_rate', -0.5, ValueError),
    ('rho', -1.0, ValueError), ('ea_custom_getter', None, TypeError),
    ('ea_custom_getter', Getter, TypeError),
    ('update_order', 'both', ValueError), ('count_steps', 'all', ValueError)])
def test_bad_arguments(argument, value, error):
  with tf.Graph().as_default():
    with pytest.raises(error, match=f'`{argument}`.*Received'):
      _optimizer(Getter(''), **{argument: value})
    assert not tf1.get_default_graph().get_operations()


def test_a_keras_optimizer_is_refused():
  with pytest.raises(TypeError, match='`opt`.*Received'):
    _optimizer(Getter(''), opt=tf.keras.optimizers.SGD())


def test_worker_device_must_be_a_name():
  with pytest.raises(TypeError, match='`worker_device`'):
    Getter(lambda op: '')


def test_eager_and_function_name_the_strategy():
  getter = Getter('')
  remedy = 'tfplugin.distribute.ElasticAverageStrategy'
  with behaviors.behavior('v2'):
    assert tf.executing_eagerly()
    with pytest.raises(RuntimeError, match=remedy):
      _optimizer(getter)
    with pytest.raises(RuntimeError, match=remedy):
      tf.function(lambda: _optimizer(getter))()


def test_before_the_model_exists():
  with tf.Graph().as_default():
    optimizer = _optimizer(Getter(''))
    with pytest.raises(RuntimeError, match='Build the model first'):
      optimizer.swapping_saver()
    with pytest.raises(RuntimeError, match='Build the model first'):
      optimizer.get_init_op(0)


@pytest.mark.parametrize('is_applied', [False, True])
def test_a_saver_without_optimizer_state_is_told(caplog, is_applied):
  with tf.Graph().as_default():
    getter = Getter('')
    with getter.scope():
      w = tf1.get_variable('w', initializer=1.0)
    optimizer = _optimizer(getter, rho=0.0)
    if is_applied:
      optimizer.minimize(w * w)
    optimizer.swapping_saver()
  assert ('no state of the optimizer' in caplog.text) == (not is_applied)


def test_task_index_counts_the_chief():
  with tf.Graph().as_default():
    optimizer = _optimizer(Getter(''))
    with pytest.raises(ValueError, match='Count the chief'):
      optimizer.make_session_run_hook(False, 2)
    with pytest.raises(TypeError, match='`task_index` must be an integer'):
      optimizer.make_session_run_hook(False, 'worker')


def test_what_is_averaged_once_is_averaged_by_later_calls():
  with tf.Graph().as_default():
    getter = Getter('')
    with getter.scope():
      tf1.get_variable('trained', [])
      mean = tf1.get_variable('mean', [], trainable=False)
      rate = tf1.get_variable('rate', [], trainable=False)
    data = tf1.placeholder(tf.float32, [])
    computed = data * 2.0
    mean.assign(computed)
    for gradient in (computed, tf.constant(1.0)):
      pair, = getter.set_values([gradient], []).unaveraged.shared
      assert pair.local is rate
      assert [pair.local for pair in getter.averaged] == [mean]


def _two_calls_with_statistics():
  """Two variables, a statistic of the data of each, and their train ops."""
  getter = elastic_graphs.Getter('')
  a, b = (elastic_graphs.variable(getter, name, 0.0) for name in 'ab')
  means = [elastic_graphs.variable(getter, name, 0.0, trainable=False)
           for name in ('mean_a', 'mean_b')]
  optimizer = elastic_graphs.make_optimizer(getter, moving_rate=0.25)
  inputs = [tf1.placeholder_with_default(value, []) for value in (1.0, 4.0)]
  with tf1.control_dependencies([
      mean.assign(x) for mean, x in zip(means, inputs)]):
    trains = [optimizer.minimize(-v * x, None, [v])
              for v, x in zip((a, b), inputs)]
  return optimizer, trains, [
      [mean, elastic_graphs.center(getter, mean)] for mean in means]


@pytest.mark.parametrize('calls_of_runs, expected', [
    # Each time a copy is 1 or 4, and a quarter of the difference moves.
    ([(0, 1), (0, 1)], [[0.8125, 0.4375], [3.25, 1.75]]),
    # The second call averages both statistics, the first one its own.
    ([(0,), (1,), (0,)], [[0.859375, 0.578125], [4, 1]]),
    ([(1,), (1,)], [[0.8125, 0.4375], [3.25, 1.75]])], ids=str)
def test_a_statistic_of_the_second_calls_data_is_averaged(
    behavior, calls_of_runs, expected):
  """The first call took it for a value from outside, and shared it."""
  del behavior
  with tf.Graph().as_default():
    optimizer, trains, values = _two_calls_with_statistics()
    with elastic_graphs.session(optimizer) as session:
      for calls in calls_of_runs:
        session.run([trains[call] for call in calls])
      assert session.run(values) == expected


@pytest.mark.parametrize('is_listed', [True, False])
@pytest.mark.parametrize('is_inside', [True, False])
def test_a_statistic_is_averaged_also_by_a_call_in_a_branch(
    behavior, is_inside, is_listed):
  """Under v2 behaviour it was shared, as the branch has no write of it."""
  del behavior
  with tf.Graph().as_default():
    getter = elastic_graphs.Getter('')
    w, mean = (elastic_graphs.variable(getter, name, 0.0, trainable=trainable)
               for name, trainable in (('w', True), ('mean', False)))
    optimizer = elastic_graphs.make_optimizer(getter, moving_rate=0.25)
    x = tf1.placeholder_with_default(4.0, [])
    update = tf.group(mean.assign(x))
    if is_listed:
      tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
    with tf1.control_dependencies([update]):
      loss = -w * x
    gradients = None if is_inside else optimizer.compute_gradients(loss)

    def train():
      with tf1.control_dependencies([optimizer.apply_gradients(
          gradients or optimizer.compute_gradients(loss))]):
        return tf.constant(True)

    with tf1.control_dependencies([loss]):
      train_op = tf.cond(x > 0, train, lambda: False)
    with elastic_graphs.session(optimizer) as session:
      for expected in ([3, 1], [3.25, 1.75], [3.4375, 2.3125]):
        session.run(train_op)
        assert session.run(
            [mean, elastic_graphs.center(getter, mean)]) == expected


def test_a_call_does_not_return_the_value_that_another_call_has_taken(behavior):
  """So a newer value, which another worker has set, was lost."""
  del behavior
  with tf.Graph().as_default():
    getter = elastic_graphs.Getter('')
    a, b = (elastic_graphs.variable(getter, name, 0.0) for name in 'ab')
    rate = elastic_graphs.variable(getter, 'rate', 1.0, trainable=False)
    optimizer = elastic_graphs.make_optimizer(getter)
    trains = [optimizer.minimize(-v, None, [v]) for v in (a, b)]
    values = [rate, elastic_graphs.center(getter, rate)]
    with elastic_graphs.session(optimizer) as session:
      session.run([v.initializer for v in optimizer.variables()])
      for value, train in zip((0.5, 0.25, 0.125), (*trains, trains[0])):
        values[1].load(value, session)  # As another worker does.
        session.run(train)
        assert session.run(values) == [value, value]
      rate.load(0.0625, session)
      session.run(trains[1])
      assert session.run(values) == [0.0625, 0.0625]


def test_a_custom_gradient_finds_copies(behavior):
  del behavior

  @tf.recompute_grad
  def times_w(x):
    with tf1.variable_scope('', reuse=tf1.AUTO_REUSE, use_resource=True):
      return x * tf1.get_variable('w', initializer=2.0)

  with tf.Graph().as_default(), tf1.Session() as session:
    step, getter = tf1.train.create_global_step(), Getter('')
    with getter.scope():
      loss = times_w(times_w(tf.constant(3.0)))
    update = _optimizer(
        getter, opt=tf1.train.GradientDescentOptimizer(0.125),
        rho=0.0).minimize(loss, step)
    session.run(tf1.global_variables_initializer())
    session.run(tf1.local_variables_initializer())
    session.run(update)
    # The gradient of 3 w**2 is 12.
    assert session.run(tf1.trainable_variables()[0].read_value()) == 0.5
