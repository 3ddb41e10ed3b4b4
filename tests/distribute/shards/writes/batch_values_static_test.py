# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values of all rows, where the number of rows is static."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.distribute.shards.writes import write_forms
from tfplugin import estimator
from tfplugin.distribute.shards import current_shards

tf1 = tf.compat.v1
_train, _variable, _rows = (
    write_forms.train, write_forms.variable, write_forms.rows)
KEYS = tf1.GraphKeys
SHARDS, FOUR = write_forms.SHARDS, write_forms.FOUR
LOCAL, GLOBAL = [KEYS.LOCAL_VARIABLES], [KEYS.GLOBAL_VARIABLES]


# Of a tensor with a static shape, TensorFlow makes constants of these.
COUNTS = {
    'ones_like': lambda v, x: v.assign(
        tf.reduce_sum(x) / tf.reduce_sum(tf.ones_like(x))),
    'ones_like_v1': lambda v, x: v.assign(
        tf.reduce_sum(x) / tf.reduce_sum(tf1.ones_like(x, optimize=True))),
    'of_another_dtype': lambda v, x: v.assign(
        tf.reduce_sum(x) / tf.reduce_sum(
            tf.ones_like(tf.cast(x, tf.int32), tf.float32))),
    'zeros_like': lambda v, x: v.assign(
        tf.reduce_mean(tf.concat([x, tf.zeros_like(x)], 0))),
    'zeros_like_v1': lambda v, x: v.assign(
        tf.reduce_mean(tf.concat([x, tf1.zeros_like(x)], 0))),
    'size': lambda v, x: v.assign(
        tf.reduce_sum(x) / tf.cast(tf.size(x), tf.float32)),
    'counted': lambda v, x: v.assign(tf.reduce_sum(tf.ones_like(x))),
    'in_a_branch': lambda v, x: v.assign(tf.cond(
        tf.reduce_sum(x) > 9.0, lambda: tf.reduce_sum(tf.ones_like(x)),
        lambda: 7.0)),
    'filled': lambda v, x: v.assign(tf.reduce_sum(
        tf.where(x > 2.0, x, tf.fill(tf.shape(x), 5.0)))),
    'positions': lambda v, x: v.assign(tf.reduce_sum(
        x * tf.range(_rows(x)))),
}


@pytest.mark.parametrize('form', SHARDS)
def test_what_counts_static_rows_counts_those_of_all(behavior, form):
  make = {'v': functools.partial(_variable, collections=LOCAL)}
  found, expected = (_train(each, COUNTS, make, FOUR, True)
                     for each in (form, 'one_device'))
  for name, (value,) in expected.items():
    assert found[name] == pytest.approx(
        [value] * len(found[name]), rel=1e-5), name


@pytest.mark.parametrize('form', SHARDS)
def test_the_remedy_for_a_static_number_of_rows(behavior, form):
  def positions(v, x):
    number = tf.compat.dimension_value(x.shape[0])
    return v.assign(tf.reduce_sum(x * tf.range(tf.cast(
        _rows(x) if number is None else number, tf.float32))))

  make = {'v': functools.partial(_variable, collections=LOCAL)}
  with pytest.raises(ValueError, match=(
      'Mul .*static number of rows, leave that open: batch without '
      '`drop_remainder=True`')):
    _train(form, {'v': positions}, make, FOUR, True)
  found = _train(form, {'v': positions}, make, FOUR, False)['v/v']
  assert found == [0 + 2 + 20 + 90] * len(found)


@pytest.mark.parametrize('count', [
    lambda x: 1.0, lambda x: float(x.shape[0])], ids=('one', 'rows'))
@pytest.mark.parametrize('form', SHARDS)
def test_one_that_may_be_a_row_is_refused(form, count):
  # One device adds 1 or 2: who is asked tells nothing.
  def train(add):
    return _train(form, {'v': add}, {'written': functools.partial(
        _variable, collections=LOCAL)}, np.float32([3, 5]), True)

  with pytest.raises(ValueError, match='the constant 1, which is the number of '
                     r'rows.*Count rows by `tf.shape\(x\)\[0\]`'):
    train(lambda v, x: v.assign_add(count(x)))
  assert set(train(lambda v, x: v.assign_add(_rows(x)))['written/v']) == {4.0}


@pytest.mark.parametrize('update, is_told', [
    (lambda v, x: v.assign(tf.reduce_sum(x) / int(x.shape[0])), True),
    (lambda v, x: v.assign(tf.reduce_sum(x) * (1.0 / int(x.shape[0]))), True),
    (lambda v, x: v.assign(tf.reduce_sum(x) / _rows(x)), False),
    (lambda v, x: v.assign(tf.reduce_sum(x) / 7.0), False),
    (lambda v, x: v.assign(tf.reduce_sum(x) / tf.reduce_sum(
        tf.ones([int(x.shape[0])]))), True),
    (lambda v, x: v.assign(tf.reduce_sum(tf.ones([int(x.shape[0])]))), True),
    (lambda v, x: v.assign(tf.reduce_sum(x[:, None, None], [0, 1, 2])), False),
    # Each shard counts its rows, and the sum counts those of all.
    (lambda v, x: v.assign(current_shards.cross_replica_sum(tf.reduce_sum(
        x * tf.ones([int(x.shape[0])])))), False),
], ids=['divided', 'times', 'counted', 'another', 'ones', 'ones_alone', 'axes',
        'summed'])
def test_rows_as_a_python_number_are_told(update, is_told, caplog):
  with caplog.at_level('WARNING', 'tensorflow'):
    _train(next(iter(SHARDS)), {'own': update}, {
        'saved': functools.partial(_variable, collections=GLOBAL)}, FOUR, True)
  told = [r.getMessage() for r in caplog.records
          if 'tf.shape(x)[0]' in r.getMessage()]
  assert bool(told) == is_told


def _told_with_one_row(caplog, form, update):
  """Returns the warnings about the number of rows, with one in each shard."""
  caplog.clear()
  with caplog.at_level('WARNING', 'tensorflow'):
    _train(form, {'own': update}, {'saved': functools.partial(
        _variable, collections=GLOBAL)}, np.float32([3, 5]), True)
  return [r.getMessage() for r in caplog.records
          if 'a shard has 1 row.' in r.getMessage()]


@pytest.mark.parametrize('form', SHARDS)
def test_a_division_by_one_row_is_told(caplog, form):
  assert len(_told_with_one_row(caplog, form, lambda v, x: v.assign(
      tf.reduce_sum(x) / int(x.shape[0])))) == 1
  # Other uses of 1 do not count rows.
  assert not _told_with_one_row(caplog, form, lambda v, x: v.assign(
      1.0 / (1.0 + tf.reduce_sum(1.0 * tf.expand_dims(x, 1), 0)[0])))


@pytest.mark.parametrize('divide, told', [
    (lambda loss, x: loss / int(x.shape[0]), True),
    (lambda loss, x: loss / 2.0, False), (lambda loss, x: 1.0 * loss, False)])
def test_a_sum_divided_by_one_row_is_told(behavior, caplog, divide, told):
  def model_fn(features, labels, mode):
    w = tf1.get_variable('w', initializer=3.0)
    loss = divide(tf1.losses.mean_squared_error(
        labels, w * features, reduction=tf1.losses.Reduction.SUM), features)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss,
        train_op=tf1.train.GradientDescentOptimizer(0.1).minimize(loss))

  with tf.Graph().as_default():
    estimator.cross_shard(model_fn, devices=['/cpu:0', '/cpu:0'])(
        tf.ones([2]), tf.ones([2]), 'train')
  assert ('a shard has 1 row. The sum' in caplog.text) == told


@pytest.mark.parametrize('number, told', [(6, True), (2, True), (7, False)])
def test_elements_as_a_python_number_are_told(behavior, caplog, number, told):
  """A shard has two rows of three elements."""
  def build(write):
    def model_fn(features, labels, mode):
      del labels
      v = tf1.get_variable('v', [], trainable=False,
                           initializer=tf1.zeros_initializer())
      loss = tf.reduce_mean(features * tf1.get_variable('w', [3]))
      update = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
      return tf.estimator.EstimatorSpec(
          mode, loss=loss, train_op=tf.group(update, write(v, features)))

    with tf.Graph().as_default():
      estimator.cross_shard(model_fn, devices=['/cpu:0', '/cpu:0'])(
          tf.ones([4, 3]), None, 'train')

  build(lambda v, x: v.assign(tf.reduce_sum(x) / float(number)))
  assert ('a shard has 2 rows' in caplog.text) == told
  if told:
    with pytest.raises(ValueError, match=f'the constant {number}, which is'):
      build(lambda v, x: v.assign_add(float(number)))
