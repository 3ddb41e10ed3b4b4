# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""One step of a model_fn that writes variables, in every form of towers."""

import functools

import numpy as np
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.shards import cross_shard_strategy
from tfplugin.distribute.towers import tower_strategy
from tfplugin.estimator import cross_shard
from tfplugin.estimator import replicate
from tfplugin.estimator import tpu_shards

tf1 = tf.compat.v1
CPUS = ['/cpu:0', '/cpu:1']
FIVE, FOUR = np.float32([1, 2, 3, 10, 30]), np.float32([1, 2, 10, 30])


def _on_one_device(model_fn, x, static):
  del static
  return model_fn(x, None, 'train').train_op


def _by_decorator(decorate, model_fn, x, static):
  del static
  return decorate(model_fn)(x, None, 'train').train_op


def _by_strategy(make, model_fn, x, static):
  strategy = make(CPUS)
  rows = int(x.shape[0]) if static else None
  cut = (rows + 1) // 2 if static else (tf.shape(x)[0] + 1) // 2
  with strategy.scope():
    tf1.train.get_or_create_global_step()
    spec = strategy.extended.call_for_each_replica(model_fn, args=(
        _tf_internals.per_replica([x[:cut], x[cut:]]), None, 'train'))
    # Without a spec: the ops of all towers.
    return tf.group(strategy.experimental_local_results(
        getattr(spec, 'train_op', spec)))


def _by_tpu(model_fn):
  def with_params(features, labels, mode, params):
    del params
    return model_fn(features, labels, mode)
  sharded = tpu_shards.shard_model_fn(with_params, 2, CPUS)
  return functools.partial(sharded, params={})


FORMS = {
    'one_device': _on_one_device,
    'replicate_model_fn': functools.partial(
        _by_decorator,
        lambda fn: replicate.replicate_model_fn(fn, devices=CPUS)),
    'TowerStrategy': functools.partial(
        _by_strategy, tower_strategy.TowerStrategy),
    'cross_shard': functools.partial(
        _by_decorator, lambda fn: cross_shard(fn, devices=CPUS)),
    'ShardedTPUEstimator': functools.partial(_by_decorator, _by_tpu),
    'CrossShardStrategy': functools.partial(
        _by_strategy, cross_shard_strategy.CrossShardStrategy),
}
SHARDS = ('cross_shard', 'ShardedTPUEstimator', 'CrossShardStrategy')


def train(form, updates, make_variables, x, static, steps=2):
  """Returns what is written, of each device, by `<way to make it>/<update>`."""
  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=3.0)
    loss = tf.reduce_mean(w * features)
    train_op = tf1.train.GradientDescentOptimizer(0.0).minimize(loss)
    written = [update(make(f'{scope}/{name}'), features)
               for scope, make in make_variables.items()
               for name, update in updates.items()]
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=tf.group(train_op, *written))

  with tf.Graph().as_default(), tf1.Session() as session:
    rows = tf.constant(x) if static else tf1.placeholder(tf.float32, [None])
    train_op = FORMS[form](model_fn, rows, static)
    session.run([tf1.global_variables_initializer(),
                 tf1.local_variables_initializer()])
    for _ in range(steps):
      session.run(train_op, {} if static else {rows: x})
    return {v.op.name: session.run([
        copy.read_value() for copy in getattr(v, 'values', [v])])
            for v in [*tf1.local_variables(), *tf1.global_variables()]
            if v.op.name.split('/')[0] in make_variables}


def variable(name, collections, **kwargs):
  return tf1.get_variable(name, initializer=0.0, trainable=False,
                          collections=collections, **kwargs)


def rows(x):
  return tf.cast(tf.shape(x)[0], tf.float32)
