# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The remedy that an error about shards names has the numbers of one device."""

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin import estimator as estimator_lib
from tfplugin.testing import devices
from tfplugin.testing import one_device

tf1 = tf.compat.v1

_X = np.float32([[1, 2], [3, 5], [4, 1], [2, 7]])
_Y = np.float32([1, 0, 2, 1])


def _variable(*shape):
  return tf1.get_variable('v', shape, initializer=tf1.zeros_initializer(),
                          trainable=False)


def _is_even():
  return tf.equal(tf1.train.get_global_step() % 2, 0)


def _total(rows):
  total = tf1.py_func(lambda x: x.sum(), [rows], tf.float32)
  total.set_shape([])
  return total


def _mean_of_all(rows):
  return tfplugin.cross_replica_sum(_total(rows)) / (
      tfplugin.cross_replica_sum(tf.cast(tf.shape(rows)[0], tf.float32)))


def _choose(value):
  v = _variable()
  return v.assign(tf.cond(_is_even(), lambda: value, v.read_value))


def _in_branch(write):
  return tf.cond(_is_even(), lambda: tf.group(write()), tf.no_op)


def _repeated(mean):
  def body(i, total):
    return i + 1, total + mean
  return tf.while_loop(lambda i, _: i < 3, body, [0, 0.0])[1]


def _writing_loop(rows):
  v = _variable()

  def body(i):
    with tf.control_dependencies([v.assign_add(tf.reduce_mean(rows))]):
      return i + 1
  return tf.while_loop(lambda i: i < 3, body, [0])


def _table(rows):
  table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)
  return table.insert(tf.cast(rows[:, 0], tf.int64), rows[:, 1])


def _weighted(rows, labels):
  """Returns the prediction for each row, and its weight."""
  return tf.reduce_sum(rows * tf1.get_variable(
      'w', initializer=[0.5, -0.25]), 1), labels


def _loss(rows, labels, factor=1.0):
  prediction, weights = _weighted(rows, labels)
  return tf1.losses.mean_squared_error(
      labels, prediction, weights=factor * weights)


def _loss_in_branch(rows, labels):
  prediction, weights = _weighted(rows, labels)
  return tf.cond(
      _is_even(), lambda: tf1.losses.mean_squared_error(
          labels, prediction, weights=weights, loss_collection=None),
      lambda: 0.0)


def _root_of_sum(rows, labels):
  prediction, _ = _weighted(rows, labels)
  return tf.sqrt(tf1.losses.mean_squared_error(
      labels, prediction, reduction=tf1.losses.Reduction.SUM))


# Error, the program that gets it, and the program with its remedy. A program
# returns a write beside the train step, or None; and the loss.
_WRITES = {
    'a value that is not recomputed': (
        'is the sum over all rows of a sum `s`',
        lambda x: _variable().assign(_total(x)),
        lambda x: _variable().assign(tfplugin.cross_replica_sum(_total(x)))),
    'a mean that is not recomputed': (
        'and a mean is such a sum divided by',
        lambda x: _variable().assign(_repeated(tf.reduce_mean(x))),
        lambda x: _variable().assign(_mean_of_all(x))),
    'a count': (
        r'Count rows by `tf.shape\(x\)\[0\]`',
        lambda x: _variable().assign(float(int(x.shape[0]))),
        lambda x: _variable().assign(tf.cast(tf.shape(x)[0], tf.float32))),
    'a write in a branch': (
        'let branches choose the values that it is given',
        lambda x: _in_branch(lambda: _variable().assign(tf.reduce_mean(x))),
        lambda x: _choose(tf.reduce_mean(x))),
    'a write in a loop': (
        'Received: a write to a variable inside one of these. Make the call in '
        'every step', _writing_loop, lambda x: _variable().assign_add(
            _repeated(_mean_of_all(x)))),
    'rows in a table': (
        'Keep the rows in a variable, with `variable.scatter_add`', _table,
        lambda x: _variable(8).scatter_add(tf.IndexedSlices(
            x[:, 1], tf.cast(x[:, 0], tf.int32)))),
}
_LOSSES = {
    'in a branch': (
        'Compute the loss in every step, and let branches choose the values',
        _loss_in_branch, lambda x, y: _loss(
            x, y, tf.cond(_is_even(), lambda: 1.0, lambda: 0.5))),
}


def _model_fn(write=None, loss=_loss):
  def model_fn(features, labels, mode):
    value = loss(features, labels)
    writes = [] if write is None else [
        tf.group(tf.nest.flatten(write(features)))]
    # A write may read the step, which the update advances.
    with tf.control_dependencies(writes):
      train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(
          value, tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=value, train_op=train_op)
  return model_fn


def _check(model_fn, decorator=None):
  cpus = devices.make_logical_cpus(2)
  one_device.assert_equals_one_device(
      model_fn, lambda: tf.data.Dataset.from_tensors((_X, _Y)).repeat(),
      decorator=decorator or estimator_lib.cross_shard(devices=cpus), steps=3,
      modes=['train'])


@pytest.mark.parametrize('name', _WRITES)
def test_the_remedy_of_a_refused_write(behavior, name):
  match, wrong, right = _WRITES[name]
  with pytest.raises((RuntimeError, ValueError), match=match):
    _check(_model_fn(wrong))
  _check(_model_fn(right))


@pytest.mark.parametrize('name', _LOSSES)
def test_the_remedy_of_a_refused_loss(behavior, name):
  match, wrong, right = _LOSSES[name]
  with pytest.raises((RuntimeError, ValueError), match=match):
    _check(_model_fn(loss=wrong))
  _check(_model_fn(loss=right))


def test_the_remedy_of_a_function_of_a_sum(behavior):
  model_fn = _model_fn(loss=_root_of_sum)
  with pytest.raises(ValueError, match=(
      'Use `tfplugin.replicate_model_fn`, which computes it for all rows')):
    _check(model_fn)
  _check(model_fn, estimator_lib.replicate_model_fn(
      devices=devices.make_logical_cpus(2)))
