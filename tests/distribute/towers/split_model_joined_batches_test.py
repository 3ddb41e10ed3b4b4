# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the batches of towers as one."""

import logging

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.towers import split_model

tf1 = tf.compat.v1


def test_rows_are_in_the_order_of_the_towers():
  with tf.Graph().as_default(), tf1.Session() as session:
    shared = tf.constant(3)
    batch = split_model.join([
        {'x': tf.constant([[1.], [2.]]), 'y': shared, 'mode': 'train'},
        {'x': tf.constant([[4.]]), 'y': shared, 'mode': 'train'}])
    assert batch.values['y'] is shared and batch.values['mode'] == 'train'
    assert session.run(batch.values['x']).tolist() == [[1.], [2.], [4.]]
    assert batch.num_rows == 3
    assert batch.divide() == ([0, 2], [2, 1], ())
    assert [part.shape[0] for part in batch.parts[0]] == [2, 1]


def test_rows_that_are_not_static_are_counted():
  with tf.Graph().as_default(), tf1.Session() as session:
    batch = split_model.join([
        tf1.placeholder_with_default(np.ones([rows, 2]), [None, 2])
        for rows in (3, 0, 2)])
    assert batch.num_rows is None
    begins, rows, _ = batch.divide()
    assert session.run(begins[1:]) == [3, 3]
    assert session.run(rows) == [3, 0, 2]


def test_a_tensor_without_rows_beside_open_rows_is_refused(behavior):
  with tf.Graph().as_default(), tf1.Session() as session:
    fits, batch = (split_model.join([
        (tf1.placeholder_with_default(np.ones([2]), [None]), tf.ones([rows]))
        for _ in range(2)]) for rows in (2, 5))
    assert session.run(fits.values[0]).tolist() == [1] * 4
    with pytest.raises(tf.errors.InvalidArgumentError, match=(
        'the same first dimension. Repeat a value of the whole batch')):
      session.run(batch.values[0])


def test_composites_are_joined():
  with tf.Graph().as_default(), tf1.Session() as session:
    batch = split_model.join([
        (tf.sparse.from_dense([[0, 1]]), tf.ragged.constant([[1], [2, 3]])[:1]),
        (tf.sparse.from_dense([[5]]), tf.ragged.constant([[1], [2, 3]])[1:])])
    sparse, ragged = batch.values
    assert session.run(tf.sparse.to_dense(sparse)).tolist() == [[0, 1], [5, 0]]
    assert session.run(ragged).to_list() == [[1], [2, 3]]
    assert not batch.dense and batch.composites == [sparse, ragged]


def test_rows_of_different_length_are_filled_up():
  with tf.Graph().as_default(), tf1.Session() as session:
    batch = split_model.join([
        tf1.placeholder_with_default([[1., 2.]], [None, None]),
        tf1.placeholder_with_default([[3.]], [None, None])])
    assert session.run(batch.values).tolist() == [[1., 2.], [3., 0.]]
    assert session.run(batch.parts[0][1]).tolist() == [[3., 0.]]


@pytest.mark.parametrize('values, warns', (((1., 1.), False), ((1., 2.), True)))
def test_of_scalars_the_first_one_is_used(values, warns, caplog):
  with tf.Graph().as_default(), caplog.at_level(logging.WARNING, 'tensorflow'):
    batch = split_model.join(
        [(tf.constant([3.]), tf.constant(value)) for value in values])
    assert tf.get_static_value(batch.values[1]) == 1.
  assert ('the scalar tower_batches/' in caplog.text or (
      'the scalar Const' in caplog.text)) == warns


def test_what_no_tower_has_for_itself_is_no_batch():
  with tf.Graph().as_default():
    shared = tf.ones([3])
    assert split_model.join([shared, shared]) is None
    assert split_model.join([(), ()]) is None


def test_different_numbers_of_rows_in_one_batch_are_refused():
  with tf.Graph().as_default(), pytest.raises(
      ValueError, match=r'the same first dimension. Received: \[2, 3\]'):
    split_model.join([(tf.ones([2]), tf.ones([3])) for _ in range(2)])
