# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parts of variables and copies of them are saved as the functions say."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin._tf_internals import saving
from tfplugin._tf_internals import variables

tf1 = tf.compat.v1


def _parts():
  return list(tf1.get_variable(
      'whole', [4, 2], partitioner=tf1.fixed_size_partitioner(2),
      initializer=tf1.ones_initializer()))


def test_a_part_tells_its_slice_and_the_axis_of_the_split():
  with tf.Graph().as_default():
    parts = _parts()
    single = tf1.get_variable('single', [2])
  assert [saving.save_slice_info_of(p).var_offset for p in parts] == [
      [0, 0], [2, 0]]
  assert {saving.split_of(part) for part in parts} == {('whole', (0,))}
  assert saving.save_slice_info_of(single) is None
  assert saving.split_of(single) is None


def test_a_shard_is_split_by_rows():
  parts = [tf.Variable([1.0], name='part_0'), tf.Variable([2.0], name='part_1')]
  whole = variables.sharded_variable.ShardedVariable(parts, name='whole')
  assert {saving.split_of(part) for part in parts} == {(id(whole), (0,))}


def test_a_variable_marked_as_a_slice_is_saved_as_one(tmp_path):
  with tf.Graph().as_default(), tf1.Session() as session:
    variable = tf1.get_variable('v', initializer=[1.0], use_resource=True)
    saving.set_save_slice_info(variable, tf.Variable.SaveSliceInfo(
        'whole', [2], [0], [1]))
    session.run(variable.initializer)
    path = tf1.train.Saver([variable]).save(session, str(tmp_path / 'slice'))
  assert tf1.train.NewCheckpointReader(
      path).get_variable_to_shape_map() == {'whole': [2]}


def test_copies_are_restored_from_the_one_that_is_saved(tmp_path):
  with tf.Graph().as_default(), tf1.Session() as session:
    first, second = (
        tf1.get_variable(name, initializer=value, use_resource=True)
        for name, value in (('first', 1.0), ('second', 2.0)))
    saver = tf1.train.Saver(
        [saving.CopiesSaveable([first, second], first, 'one')])
    session.run(tf1.global_variables_initializer())
    path = saver.save(session, str(tmp_path / 'copies'))
    session.run([first.assign(5.0), second.assign(6.0)])
    saver.restore(session, path)
    assert session.run([first, second]) == [1.0, 1.0]


def test_the_name_of_a_value_in_a_checkpoint_is_the_one_of_variables():
  values = tf.Variable(1.0)._gather_saveables_for_checkpoint()
  assert list(values) == [saving.VARIABLE_VALUE_KEY]


@pytest.mark.parametrize('synchronization', ['AUTO', 'ON_READ'])
def test_a_variable_of_several_devices_is_saved_as_a_slice(
    tmp_path, synchronization):
  strategy = tf.distribute.MirroredStrategy(['/cpu:0', '/cpu:1'])
  with tf.Graph().as_default(), tf1.Session() as session:
    with strategy.scope():
      variable = tf1.get_variable(
          'v', initializer=[1.0],
          synchronization=tf.VariableSynchronization[synchronization],
          aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
      kind = type(variable).__name__
      saving.make_sliceable(variable)
      saving.set_save_slice_info(variable, tf.Variable.SaveSliceInfo(
          'whole', [2], [1], [1]))
      assert saving.split_of(variable) == ('whole', (0,))
      saver = tf1.train.Saver([variable])
    session.run(tf1.global_variables_initializer())
    path = saver.save(session, str(tmp_path / 'slice'))
    session.run([copy.assign([9.0]) for copy in variable.values])
    saver.restore(session, path)
    assert session.run(list(variable.values)) == [[1.0], [1.0]]
  assert type(variable).__name__ == kind
  assert tf1.train.NewCheckpointReader(
      path).get_variable_to_shape_map() == {'whole': [2]}


@pytest.mark.parametrize('devices', [['/cpu:0'], ['/cpu:0', '/cpu:1']],
                         ids=['one', 'two'])
def test_a_slice_starts_from_a_checkpoint(tmp_path, devices):
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('whole', initializer=[5.0, 6.0])
    session.run(tf1.global_variables_initializer())
    path = tf1.train.Saver().save(session, str(tmp_path / 'old'))
  strategy = tf.distribute.MirroredStrategy(devices)
  with tf.Graph().as_default(), tf1.Session() as session:
    with strategy.scope():
      variable = tf1.get_variable('v', initializer=[1.0])
      saving.make_sliceable(variable)
      saving.set_save_slice_info(variable, tf.Variable.SaveSliceInfo(
          'whole', [2], [1], [1]))
      own = variable.initializer
      tf1.train.init_from_checkpoint(path, {'whole': [variable]})
    session.run(variable.initializer)
    assert session.run(list(variable.values)) == [[6.0]] * len(devices)
    session.run(own)
    assert session.run(list(variable.values)) == [[1.0]] * len(devices)
