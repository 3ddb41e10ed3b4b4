# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metrics that are updated in training, in two towers of three rows and two."""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.towers.writes import metric_updates
from tfplugin.estimator import replicate

tf1 = tf.compat.v1

# Means 2 and 20, 9.2 of all.
_X = np.float32([1, 2, 3, 10, 30])


def _metric(name, value=0.0):
  return tf1.get_variable(
      name, initializer=value, trainable=False, use_resource=True,
      collections=[tf1.GraphKeys.LOCAL_VARIABLES,
                   tf1.GraphKeys.METRIC_VARIABLES])


def _train(update, static=False, steps=2):
  """Returns what `update` of the rows returns in the last of some steps."""
  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=1.0)
    loss = tf.reduce_mean(w * features)
    op = tf1.train.GradientDescentOptimizer(0.0).minimize(loss)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=tf.group(op),
        predictions={'found': tf.identity(update(features), name='found')})

  with tf.Graph().as_default() as graph, tf1.Session() as session:
    x = tf.constant(_X) if static else tf1.placeholder(tf.float32, [None])
    replicate.replicate_model_fn(model_fn, devices=['/cpu:0'] * 2)(
        x, None, 'train')
    found = graph.get_tensor_by_name('found:0')
    session.run([tf1.global_variables_initializer(),
                 tf1.local_variables_initializer()])
    for _ in range(steps):
      result = session.run(found, {} if static else {x: _X})
    return result.tolist()


def _recurrence(x):
  """A running mean by the usual formula, which takes rows in any parts."""
  count, mean = _metric('count'), _metric('mean')
  rows = tf.cast(tf.size(x), tf.float32)
  new = mean + (tf.reduce_mean(x) - mean) * rows / (count + rows)
  with tf.control_dependencies([new]):
    added = count.assign_add(rows)
  with tf.control_dependencies([added]):
    return mean.assign(new)


@pytest.mark.parametrize('update, expected', [
    (lambda x: _metric('v').assign_add(1.0), 2.0),
    (lambda x: _metric('v').assign_add(tf.reduce_mean(x)), 18.4),
    (lambda x: _metric('v').assign_add(tf.reduce_sum(x)), 92.0),
    (lambda x: _metric('v').assign_add(tf.cast(tf.shape(x)[0], tf.float32)),
     10.0),
    (lambda x: _metric('v').assign(tf.reduce_mean(x)), 9.2),
    (lambda x: _metric('v').assign(tf.reduce_sum(x)), 46.0),
    (lambda v: _decayed(v), 0.9 * 0.92 + 0.92),
    (lambda x: tf1.metrics.mean(tf.reduce_mean(x))[1], 9.2),
    (lambda x: tf1.metrics.mean(tf.reduce_sum(x))[1], 46.0),
    (lambda x: tf1.metrics.mean(x)[1], 9.2),
    (lambda x: tf1.metrics.mean(x, weights=x)[1], 1014 / 46),
    (lambda x: tf1.metrics.mean(tf.reduce_max(x))[1], 30.0),
    (lambda x: _running_maximum(x), 30.0),
    (_recurrence, 9.2),
])
def test_a_metric_is_that_of_one_device(behavior, update, expected):
  for static in (False, True):
    assert _train(update, static) == pytest.approx(expected, rel=1e-5)


def _decayed(x):
  v = _metric('v')
  return v.assign(v * 0.9 + tf.reduce_mean(x) * 0.1)


def _running_maximum(x):
  v = _metric('v', -np.inf)
  return v.assign(tf.maximum(v, tf.reduce_max(x)))


def test_a_static_number_of_rows_is_added_up(behavior):
  assert _train(lambda x: _metric('v').assign_add(float(x.shape[0])),
                static=True) == 10.0


def test_the_first_tower_updates_last_and_reads_before_it_does(behavior):
  # 0 -> 0 * 10 + 2 -> 2 * 10 + 3 -> 23 * 10 + 1, of towers 0 to 2.
  with tf.Graph().as_default() as graph, tf1.Session() as session:
    variable = tf1.get_variable('v', initializer=0.0, use_resource=True)
    towers, updates, reads = [], [], []
    for tower in range(3):
      before = set(graph.get_operations())
      value = variable.read_value()
      reads.append(value.op.inputs[0].op)
      updates.append(variable.assign(value * 10 + (tower + 1.)).op)
      reads.append(variable.read_value().op.inputs[0].op)  # Of no update.
      towers.append([op for op in graph.get_operations() if op not in before])
    metric_updates.Metrics([variable], towers, [], []).take_turns()
    session.run(tf1.global_variables_initializer())
    session.run(updates)
    assert session.run(variable) == 231.0
  # Nothing waits but what an update is made of.
  writes = [next(op for op in ops if op.type == 'AssignVariableOp')
            for ops in towers]
  waits = {op.name: set(op.control_inputs) & set(writes)
           for op in (*reads, *writes)}
  assert waits[writes[0].name] == {writes[2]}
  assert waits[writes[2].name] == {writes[1]}
  read_0, _, read_1, _, read_2, _ = (waits[read.name] for read in reads)
  assert (read_0, read_1, read_2) == ({writes[2]}, set(), {writes[1]})
