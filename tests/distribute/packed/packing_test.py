# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small variables and gradients share a message, and no bit changes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.distribute.packed import packed_programs
from tfplugin.distribute.packed import packing
from tfplugin.testing import clusters

tf1 = tf.compat.v1


@pytest.fixture(scope='module', name='cluster')
def fixture_cluster():
  return clusters.in_process_cluster(num_workers=1, num_ps=2)


@pytest.mark.sampled(8)
@pytest.mark.parametrize('form', packed_programs.FORMS)
def test_as_many_messages_for_40_variables_as_for_8(behavior, cluster, form):
  few, _ = packed_programs.trained(form, cluster, packed_programs.many(8))
  many, _ = packed_programs.trained(form, cluster, packed_programs.many(40))
  not_packed = []
  if form in packed_programs.BY_HAND:  # Nobody knows when the graph is done.
    not_packed.append(('ps', 'worker'))
  if form == 'drop, locked' and behavior == 'v2':
    not_packed.append(('ps', 'ps'))  # The inputs of one `tf.If`.
  for way in not_packed:
    del few[way], many[way]
  assert few == many


@pytest.mark.parametrize('form', ['plain, strategy', 'drop, decorator',
                                  'clip, optimizer'])
def test_as_many_messages_of_gradients_for_8_tables_as_for_4(
    behavior, cluster, form):
  del behavior
  few, many = (packed_programs.trained(
      form, cluster, packed_programs.tables(number))[0] for number in (4, 8))
  assert few['worker', 'ps'] == many['worker', 'ps']


@pytest.mark.parametrize('rows', [0, 1, 5])
@pytest.mark.parametrize('dtype', [tf.int32, tf.int64])
def test_slices_arrive_as_they_were(behavior, cluster, rows, dtype):
  """Of no row, of repeated ones, of tables that share their indices."""
  del behavior
  random = np.random.RandomState(rows)
  with tf.Graph().as_default() as graph, tf1.device('/job:worker/task:0'):
    ids = [tf1.placeholder_with_default(value, [None]) for value in (
        random.randint(0, 3, [rows]).astype(dtype.as_numpy_dtype),
        np.array([2, 2, 0], dtype.as_numpy_dtype))]
    sent = [tf.IndexedSlices(tf.constant(random.standard_normal(
        [rows if each is ids[0] else 3, *shape])), each)
            for each, shape in ((ids[0], [2]), (ids[1], [2, 2]), (ids[0], []))]
    with tf1.device('/job:ps/task:0'):
      variables = [tf1.get_variable(
          f'v{index}', [3, *slices.values.shape.as_list()[1:]], tf.float64)
                   for index, slices in enumerate(sent)]
    arrived = [slices for slices, _ in packing.send_gradients(
        list(zip(sent, variables)))]
    assert all(tensor.device == '/job:ps/task:0' for slices in arrived
               for tensor in (slices.values, slices.indices))
    with cluster.session(0, graph) as session:
      for before, after in zip(*session.run([sent, arrived])):
        np.testing.assert_array_equal(before.indices, after.indices)
        np.testing.assert_array_equal(before.values, after.values)


@pytest.mark.sampled(12)
@pytest.mark.parametrize('optimizer', packed_programs.OPTIMIZERS)
@pytest.mark.parametrize('program', packed_programs.PROGRAMS)
@pytest.mark.parametrize('form', packed_programs.FORMS)
def test_no_bit_changes_on_the_way(
    behavior, cluster, monkeypatch, form, program, optimizer):
  del behavior
  args = (form, cluster, packed_programs.PROGRAMS[program],
          packed_programs.OPTIMIZERS[optimizer])
  few, values = packed_programs.trained(*args)
  monkeypatch.setattr(packing, 'MAX_BYTES', -1)
  many, expected = packed_programs.trained(*args)
  assert sum(few.values()) < sum(many.values()) or (
      form in packed_programs.BY_HAND)
  assert values.keys() == expected.keys()
  for name, value in values.items():
    np.testing.assert_array_equal(value, expected[name], err_msg=name)


def test_slices_of_lists_are_left_alone(behavior, cluster):
  del behavior
  with tf.Graph().as_default(), tf1.device(cluster.device_setter(0)):
    variables = [tf1.get_variable(f'v{index}', [3]) for index in range(4)]
    for values in tf.ones([1]), [1.0]:
      pairs = [(tf.IndexedSlices(values, [0]), variable)
               for variable in variables]
      assert packing.send_gradients(pairs) == pairs
