# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what is summed in a process, and what by Horovod.

Sums over real processes are in cross_shard_extended_test.
"""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.shards import horovod_processes
from tfplugin.testing import behaviors

_SUM, _MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN
_PROCESSES = 3

pytestmark = pytest.mark.usefixtures('sums_of_equal_processes')


@pytest.fixture(name='sums_of_equal_processes')
def _sums_of_equal_processes(monkeypatch):
  """Three processes that have the same values."""

  def sum_over(x):
    if isinstance(x, tf.IndexedSlices):
      return tf.IndexedSlices(tf.concat([x.values] * _PROCESSES, 0),
                              tf.concat([x.indices] * _PROCESSES, 0),
                              x.dense_shape)
    return x * _PROCESSES

  monkeypatch.setattr(horovod_processes, 'sum_over', sum_over)


class _Others:
  """What is beneath the mixin."""

  def _reduce_to(self, reduce_op, value, destinations, options):
    return 'by the others'


class _Extended(horovod_processes.HorovodReduction, _Others):

  def __init__(self, num_devices):
    self.worker_devices = [f'/cpu:{i}' for i in range(num_devices)]
    self._num_replicas_in_sync = num_devices * _PROCESSES

  def _local_results(self, value):
    return tf.distribute.get_strategy().experimental_local_results(value)

  def batch_reduce(self, op, values):
    return self._reduce_over_all(op, [(value, None) for value in values], None)

  def reduce(self, op, value):
    return self._reduce_to(op, value, None, None)


@pytest.fixture(name='values_of')
def _values_of():
  """Makes the value of a process's replicas, in the scope of a strategy."""
  strategy = tf.distribute.MirroredStrategy(
      ['CPU:0', 'CPU:1'], tf.distribute.ReductionToOneDevice())

  def make(fn):
    return strategy.run(lambda: fn(tf.cast(
        tf.distribute.get_replica_context().replica_id_in_sync_group,
        tf.float32)))

  with behaviors.behavior('v2'), strategy.scope():
    yield make


@pytest.mark.parametrize('op, expected', ((_SUM, 9.0), (_MEAN, 1.5)))
def test_dense_values_of_two_devices(values_of, op, expected):
  value = values_of(lambda replica: replica + 1.0)  # 1 and 2.
  for total in (*_Extended(2).batch_reduce(op, [value]),
                _Extended(2).reduce(op, value)):
    assert [float(copy) for copy in total.values] == [expected, expected]


@pytest.mark.parametrize('op, factor', ((_SUM, 1.0), (_MEAN, 1 / 6)))
def test_rows_stay_rows(values_of, op, factor):
  value = values_of(lambda replica: tf.IndexedSlices(
      tf.reshape(replica + 1.0, [1, 1]), tf.constant([2]), tf.constant([4, 1])))
  total, = _Extended(2).batch_reduce(op, [value])
  for copy in total.values:
    assert copy.indices.numpy().tolist() == [2] * 6
    dense = np.zeros([4, 1])
    np.add.at(dense, copy.indices.numpy(), copy.values.numpy())
    np.testing.assert_allclose(dense[:, 0], [0, 0, 9 * factor, 0], rtol=1e-6)


def test_what_is_alike_in_all_replicas_is_left_to_the_others():
  strategy = tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1'])
  with strategy.scope():
    assert _Extended(2).reduce(_MEAN, tf.Variable(1.0)) == 'by the others'
    assert _Extended(2).reduce(_SUM, tf.constant(1.0)) == 'by the others'
