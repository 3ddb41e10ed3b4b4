# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables that a model_fn writes by itself, in every form of towers.

One device computes the expected values from all rows. `replicate_model_fn` and
TowerStrategy get towers of three rows and two, shards get two and two.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tests.distribute.shards.writes import write_forms
from tfplugin import _tf_internals

tf1 = tf.compat.v1
_train, _variable, _rows = (
    write_forms.train, write_forms.variable, write_forms.rows)
KEYS = tf1.GraphKeys
FORMS, SHARDS = write_forms.FORMS, write_forms.SHARDS
CPUS, FIVE, FOUR = write_forms.CPUS, write_forms.FIVE, write_forms.FOUR
LOCAL, GLOBAL = [KEYS.LOCAL_VARIABLES], [KEYS.GLOBAL_VARIABLES]


UPDATES = {
    'one': lambda v, x: v.assign_add(1.0),
    'one_by_function': lambda v, x: tf1.assign_add(v, 1.0),
    'added_mean': lambda v, x: v.assign_add(tf.reduce_mean(x)),
    'subtracted_mean': lambda v, x: tf1.assign_sub(v, tf.reduce_mean(x)),
    'added_sum': lambda v, x: v.assign_add(tf.reduce_sum(x)),
    'added_rows': lambda v, x: v.assign_add(_rows(x)),
    'mean': lambda v, x: v.assign(tf.reduce_mean(x)),
    'sum': lambda v, x: tf1.assign(v, tf.reduce_sum(x)),
    'decay': lambda v, x: v.assign(v * 0.9 + tf.reduce_mean(x) * 0.1),
    'decay_by_difference': lambda v, x: v.assign_sub(
        (v - tf.reduce_mean(x)) * 0.1),
    'next': lambda v, x: v.assign(v + 1.0),
    'weight': lambda v, x: v.assign(v + tf1.trainable_variables()[0]),
}


def _expected(x):
  """What the variables are after two steps, from 0; decays of .9."""
  mean, decay = x.mean(), 0.1 * x.mean() * 1.9
  return {
      'one': 2.0, 'one_by_function': 2.0, 'added_mean': 2 * mean,
      'subtracted_mean': -2 * mean, 'added_sum': 2 * x.sum(),
      'added_rows': 2.0 * len(x), 'mean': mean, 'sum': x.sum(), 'decay': decay,
      'decay_by_difference': decay, 'next': 2.0, 'weight': 6.0}


@pytest.mark.sampled(3)
@pytest.mark.parametrize('static', (False, True), ids=('dynamic', 'static'))
@pytest.mark.parametrize('form', FORMS)
def test_written_is_what_one_device_writes(behavior, form, static):
  x = FOUR if form in SHARDS else FIVE
  found = _train(form, UPDATES, {
      'local': functools.partial(_variable, collections=LOCAL),
      'saved': functools.partial(_variable, collections=GLOBAL)}, x, static)
  for name, expected in _expected(x).items():
    for values in (found[f'local/{name}'], found[f'saved/{name}']):
      assert values == pytest.approx([expected] * len(values), rel=1e-5), name


def _averaged(v, x):
  """A moving average of numbers, which TensorFlow itself updates."""
  numbers = [tf.nn.moments(x, [0])[1], tf.reduce_max(x)]
  average = tf1.train.ExponentialMovingAverage(0.5)
  with tf.control_dependencies([average.apply(numbers)]):
    return v.assign(tf.add_n([
        tf.identity(average.average(number)) for number in numbers]))


OTHERS = {
    'largest': lambda v, x: v.assign(tf.reduce_max(x)),
    'variance': lambda v, x: v.assign(tf.nn.moments(x, [0])[1]),
    'root': lambda v, x: v.assign_add(tf.sqrt(_rows(x))),
    'norm': lambda v, x: v.assign(tf.norm(x - tf.reduce_mean(x))),
    'masked': lambda v, x: v.assign(tf.reduce_mean(
        tf.boolean_mask(x, x > 1.5))),
    'pairs': lambda v, x: v.assign(tf.reduce_sum(
        tf.abs(x[:, None] - x[None]))),
    'chosen': lambda v, x: v.assign(tf.where(
        tf.reduce_sum(x) > 9.0, tf.reduce_min(x), 7.0)),
    'centred': lambda v, x: v.assign(tf.reduce_sum(
        tf.square(x - tf.reduce_mean(x)))),
    # The first shard's rows alone would take the other branch.
    'branch': lambda v, x: v.assign(tf.cond(
        tf.reduce_sum(x) > 9.0, lambda: tf.reduce_mean(x), lambda: v + 7.0)),
    'constants': lambda v, x: v.assign_add(tf.cond(
        tf.reduce_max(x) > 9.0, lambda: 3.0, lambda: 7.0)),
    'branch_of_rows': lambda v, x: v.assign(tf.reduce_sum(tf.cond(
        tf.reduce_max(x) > 9.0, lambda: 2 * x, lambda: -x))),
    'branch_in_a_branch': lambda v, x: v.assign(tf.cond(
        tf.reduce_sum(x) > 9.0, lambda: tf.cond(
            v < 1.0, lambda: tf.reduce_max(x), lambda: v - _rows(x)),
        lambda: 7.0)),
    'case': lambda v, x: v.assign(tf.case([
        (tf.reduce_sum(x) < 0.0, lambda: 1.0),
        (tf.reduce_sum(x) > 40.0, lambda: _rows(x))], default=lambda: 7.0)),
}


@pytest.mark.parametrize('form', SHARDS)
def test_what_is_neither_sum_nor_mean_is_written_too(behavior, form):
  make = {'v': functools.partial(_variable, collections=LOCAL)}
  found, expected = (_train(each, OTHERS, make, FOUR, False)
                     for each in (form, 'one_device'))
  for name, (value,) in expected.items():
    assert found[name] == pytest.approx(
        [value] * len(found[name]), rel=1e-5), name


@pytest.mark.parametrize('form', ('cross_shard', 'ShardedTPUEstimator'))
def test_a_moving_average_is_of_all_rows(behavior, form):
  make = {'v': functools.partial(_variable, collections=LOCAL)}
  (found,), (expected,) = (
      _train(each, {'averaged': _averaged}, make, FOUR, False)['v/averaged']
      for each in (form, 'one_device'))
  assert found == pytest.approx(expected, rel=1e-5)


def test_a_moving_average_that_cannot_be_of_all_rows_is_told(caplog):
  def update(v, x):
    number = tf.map_fn(tf.square, x)[0]
    average = tf1.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([average.apply([number])]):
      return v.assign(tf.identity(average.average(number)))

  make = {'v': functools.partial(_variable, collections=LOCAL)}
  _train('cross_shard', {'averaged': update}, make, FOUR, False)
  assert sum('It cannot be computed from all rows' in record.getMessage()
             for record in caplog.records) == 1


@pytest.mark.parametrize('update, told', [
    (lambda v, x: v.assign(tf.reduce_sum(tf.random.normal(tf.shape(x)))),
     'RandomStandardNormal'),
    (lambda v, x: v.assign(tf.map_fn(tf.square, x)[0]), 'While|Exit|Merge'),
    (lambda v, x: v.assign_add(float(x.shape[0])), 'the constant 2'),
])
@pytest.mark.parametrize('form', SHARDS)
def test_what_cannot_be_made_again_is_refused(form, update, told):
  with pytest.raises(ValueError, match=(
      f'in several shards.*({told}).*`written/v:0`')):
    _train(form, {'v': update}, {'written': functools.partial(
        _variable, collections=LOCAL)}, FOUR, True)


@pytest.mark.parametrize('form', SHARDS)
def test_the_remedy_is_written(behavior, form):
  """What a refusal recommends."""
  def update(v, x):
    return v.assign(tfplugin.cross_replica_sum(
        tf.map_fn(tf.square, x)[0]))

  found = _train(form, {'v': update}, {'in': functools.partial(
      _variable, collections=LOCAL)}, FOUR, False)['in/v']
  assert found == [FOUR[0] ** 2 + FOUR[2] ** 2] * len(found)


@pytest.mark.parametrize('form', ('cross_shard', 'ShardedTPUEstimator'))
def test_an_aggregation_decides(behavior, form):
  expected = {'SUM': 32.0, 'MEAN': 16.0, 'ONLY_FIRST_REPLICA': 2.0}
  found = _train(form, {'v': lambda v, x: v.assign(tf.reduce_max(x))}, {
      kind: functools.partial(
          _variable, collections=LOCAL,
          aggregation=tf.VariableAggregation[kind])
      for kind in expected}, FOUR, False)
  assert found == {f'{kind}/v': [value] for kind, value in expected.items()}


@pytest.mark.parametrize('form', ('replicate_model_fn', 'TowerStrategy',
                                  'cross_shard', 'ShardedTPUEstimator'))
def test_slices_are_those_of_all_rows(behavior, form):
  def make(name):
    return tf1.get_variable(name, initializer=[0.0] * 31, trainable=False)

  def histogram(v, x):
    return v.scatter_add(tf.IndexedSlices(
        tf.ones_like(x), tf.cast(x, tf.int32)))

  found, = _train(form, {'v': histogram}, {'in': make}, FOUR, False)['in/v']
  expected = np.bincount(FOUR.astype(int), minlength=31)
  np.testing.assert_array_equal(found, 2 * expected)


@pytest.mark.parametrize('form', ('replicate_model_fn', 'cross_shard'))
def test_a_sum_and_a_mean_are_added(behavior, form):
  x = FOUR if form in SHARDS else FIVE
  found = _train(form, {'v': lambda v, x: v.assign(
      tf.reduce_sum(x) + tf.reduce_mean(x))}, {'in': functools.partial(
          _variable, collections=LOCAL)}, x, False)
  assert found['in/v'] == pytest.approx([x.sum() + x.mean()], rel=1e-5)


@pytest.mark.parametrize('form', ('replicate_model_fn', 'cross_shard'))
def test_integers_and_rows(behavior, form):
  updates = {
      'count': lambda v, x: tf1.assign_add(v, tf.shape(x)[0]),
      'steps': lambda v, x: v.assign_add(1),
      'sum': lambda v, x: v.assign(tf.reduce_sum(tf.cast(x, tf.int32)) + 7),
      'rows': lambda v, x: v.assign(tf.cast(x, tf.int32)),
  }

  def make(name):
    return tf1.get_variable(
        name, initializer=[0] * 4 if name.endswith('rows') else 0,
        trainable=False)

  found = _train(form, updates, {'in': make}, FOUR, True)
  assert (found['in/count'], found['in/steps']) == ([8], [2])
  assert found['in/sum'] == [1 + 2 + 10 + 30 + 7]
  assert found['in/rows'][0].tolist() == [1, 2, 10, 30]


@pytest.mark.parametrize('form', ('cross_shard',))
def test_a_vector_as_long_as_the_rows_of_a_tower(behavior, form):
  def train(update):
    return _train(form, {'v': update}, {'in': lambda name: tf1.get_variable(
        name, initializer=[0.0, 0.0], trainable=False)}, FOUR, True)['in/v']

  written, = train(lambda v, x: v.assign_add(tf.constant([1.0, 2.0])))
  assert written.tolist() == [2.0, 4.0]
  with pytest.raises(ValueError, match='RandomUniform|of float32 that differ'):
    train(lambda v, x: v.assign(tf.random.uniform([2])))


@pytest.mark.parametrize('name', ('scatter_add', 'scatter_sub'))
@pytest.mark.parametrize('form', SHARDS[:2])
@pytest.mark.parametrize('shape', [[31], [31, 2]])
def test_functions_that_scatter_do_so_for_all_rows(
    behavior, form, name, shape):
  def count(v, x):
    rows = tf.reshape(tf.ones_like(x), [-1] + [1] * (len(shape) - 1))
    return getattr(tf1, name)(v, tf.cast(x, tf.int32), tf.tile(
        rows, [1, *shape[1:]]) * tf.reduce_max(x))

  make = {'in': lambda name: tf1.get_variable(
      name, initializer=tf.zeros(shape), trainable=False)}
  found, expected = (_train(each, {'v': count}, make, FOUR, False)['in/v'][0]
                     for each in (form, 'one_device'))
  np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize('form', ('cross_shard',))
def test_the_search_for_rows_grows_with_the_model(form, monkeypatch):
  """Not with its square: each size in a layer asks whether it counts rows."""
  calls = []
  sources_of = _tf_internals.sources_of
  monkeypatch.setattr(_tf_internals, 'sources_of', lambda tensor: (
      calls.append(tensor) or sources_of(tensor)))

  def count(layers):
    def deep(v, x):
      for _ in range(layers):
        x = x + tf.ones_like(x)
      return v.assign(tf.reduce_sum(x))

    calls.clear()
    found = _train(form, {'v': deep}, {'in': functools.partial(
        _variable, collections=LOCAL)}, FOUR, False, steps=1)['in/v']
    assert found == [FOUR.sum() + layers * len(FOUR)]
    return len(calls)

  assert count(40) < 2.5 * count(20)
