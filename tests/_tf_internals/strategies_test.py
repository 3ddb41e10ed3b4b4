# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What strategies hand around is what the functions expect."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests._tf_internals import recording
from tfplugin._tf_internals import strategies

tf1 = tf.compat.v1


def _strategy():
  return tf.distribute.MirroredStrategy(['/cpu:0', '/cpu:1'])


def _assign(variable):
  variable.assign([2.0])


def _apply(variable):
  tf1.train.GradientDescentOptimizer(0.5).apply_gradients(
      [(tf.constant([1.0]), variable)])


@pytest.mark.parametrize('change, expected', [
    (_assign, True), (_apply, False)])
def test_an_assignment_is_told_from_an_update(change, expected):
  strategy = recording.recording_strategy()
  with strategy.scope():
    variable = tf.Variable([1.0], aggregation=tf.VariableAggregation.MEAN)
  strategy.run(tf.function(lambda: change(variable)))
  updates = strategy.extended.updates
  assert updates
  assert {strategies.is_variable_assignment(fn) for fn in updates} == {expected}


def test_advancing_a_step_and_averaging_are_assignments():
  average = tf.train.ExponentialMovingAverage(0.5)
  strategy = recording.recording_strategy()
  with strategy.scope():
    variable = tf.Variable([1.0], aggregation=tf.VariableAggregation.MEAN)

  def step():
    average.apply([variable])

  strategy.run(tf.function(step))
  assert strategy.extended.updates
  for fn in (tf1.assign_add, *strategy.extended.updates):
    assert strategies.is_variable_assignment(fn)


def test_an_update_by_a_partial_is_no_assignment():
  assert not strategies.is_variable_assignment(recording.Recorder())


def test_replicas_that_differ_in_merge_calls_disagree():
  def merge_in_replica_0(replica):
    if replica == 0:
      tf.distribute.get_replica_context().merge_call(lambda _: None)

  strategy = _strategy()
  with tf.Graph().as_default(), pytest.raises(RuntimeError) as info:
    strategy.extended.call_for_each_replica(
        tf.autograph.experimental.do_not_convert(merge_in_replica_0),
        args=(strategies.regroup((0, 1)),))
  assert strategies.is_disagreement(info.value)
  assert not strategies.is_disagreement(RuntimeError('merge_call'))


def test_collectives_after_the_first_op_are_late(monkeypatch):
  monkeypatch.setenv('TF_CONFIG', '{"cluster": {"worker": ["a:1", "b:1"]}, '
                     '"task": {"type": "worker", "index": 0}}')
  tf.constant(1.0)
  with pytest.raises(RuntimeError) as info:
    tf.distribute.MultiWorkerMirroredStrategy()
  assert strategies.is_late(info.value)
  assert not strategies.is_late(RuntimeError('collective'))


def test_a_worker_of_several_knows_its_index():
  alone = tf.distribute.MultiWorkerMirroredStrategy()
  assert strategies.index_in_cluster(alone.extended) == 0
  # As in a cluster, where the start of a strategy waits for other workers.
  assert vars(alone.extended)['_id_in_cluster'] == 0
  alone.extended._id_in_cluster = 3
  assert strategies.index_in_cluster(alone.extended) == 3
  assert strategies.index_in_cluster(_strategy().extended) == 0


def test_mixins_come_first_and_the_strategy_keeps_its_name():
  class _Mixin:
    pass

  class _ExtendedMixin:
    pass

  base = _strategy()
  strategy = strategies.strategy_with_mixins(base, _Mixin, _ExtendedMixin)
  assert isinstance(strategy, _Mixin)
  assert isinstance(strategy.extended, _ExtendedMixin)
  assert type(strategy).__name__ == type(base).__name__
  assert not isinstance(base.extended, _ExtendedMixin)
  with strategy.scope():
    assert tf.distribute.get_strategy() is strategy


def test_a_copied_replica_context_is_entered_as_itself():
  def inside():
    context = tf.distribute.get_replica_context()
    copied = strategies.copy_of_replica_context(context)
    copied.marked = True
    with copied:
      assert tf.distribute.get_replica_context() is copied
      assert copied.replica_id_in_sync_group == (
          context.replica_id_in_sync_group)
    assert not hasattr(tf.distribute.get_replica_context(), 'marked')

  _strategy().run(inside)


def test_the_function_inside_a_tf_function_is_found():
  def function():
    pass

  assert strategies.python_function_of(tf.function(function)) is function
  assert strategies.python_function_of(function) is function


def test_variables_of_several_devices_are_known():
  with _strategy().scope():
    assert strategies.is_distributed_variable(tf.Variable(1.0))
  assert not strategies.is_distributed_variable(tf.Variable(1.0))


def test_a_session_fetches_the_value_of_the_first_device():
  with tf.Graph().as_default(), tf1.Session() as session:
    value = _strategy().run(
        lambda: tf.distribute.get_replica_context().replica_id_in_sync_group
        + tf.constant(5))
    with pytest.raises(TypeError):
      session.run(value)
    strategies.make_fetchable(value)
    assert session.run(value) == 5


def test_what_is_left_alone_calls_what_is_converted():

  def total(x):
    found = 0.0
    for row in x:
      found += row
    return found

  @tf.function
  def step(x):
    fn = strategies.converted_as_here(lambda x: total(x))
    return tf.autograph.experimental.do_not_convert(lambda: fn(x))()

  assert float(step(tf.constant([1.0, 2.0]))) == 3.0


def test_a_shard_is_a_replica_with_a_model():
  found = []

  def replica():
    found.append((strategies.is_in_replica(), strategies.is_in_shard()))
    tf.distribute.get_replica_context().tower = 0
    found.append((strategies.is_in_replica(), strategies.is_in_shard()))

  with tf.distribute.MirroredStrategy(['/cpu:0']).scope():
    assert not strategies.is_in_replica() and not strategies.is_in_shard()
    tf.distribute.get_strategy().run(replica)
  assert found == [(True, False), (True, True)]


def test_the_number_of_shards_is_that_of_the_context_around():
  assert strategies.number_of_tpu_shards() is None
  with strategies.tpu_function.tpu_shard_context(4):
    assert strategies.number_of_tpu_shards() == 4
  assert strategies.number_of_tpu_shards() is None
