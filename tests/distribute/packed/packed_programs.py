# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small models in a cluster, trained by each form on parameter servers."""

from __future__ import annotations

import functools
from typing import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

import tfplugin
from tests.distribute.elastic import transfers
from tests.helpers import strategy_worker

tf1 = tf.compat.v1


def _biases(x):
  """Adds small variables, of which each server has several."""
  return x + tf.add_n([tf1.get_variable(f'v_bias_{index}', x.shape[1:])
                       for index in range(6)])


def _layers(features):
  """Kernels, a large one, batch norm, and a table with repeated ids."""
  table = tf1.get_variable('v_table', [7, 4])
  x = tf.nn.embedding_lookup(table, [1, 2, 2, 5]) + features
  x = x @ tf1.get_variable('v_wide', [4, 4096]) @ tf1.get_variable(
      'v_narrow', [4096, 3])
  return tf1.layers.batch_normalization(_biases(x), training=True)


def _parts(features):
  """Parts of a table, and two reads of a variable that is shared."""
  table = tf1.get_variable('v_parts', [8, 4], partitioner=(
      tf1.fixed_size_partitioner(4)))
  kernel = tf1.get_variable('v_kernel', [4, 4])
  x = tf.nn.embedding_lookup(table, [0, 3, 5, 7]) + features
  return tf.tanh(_biases(x) @ kernel) @ kernel


def _loop(features):
  """A variable that is read in each iteration, and one around the loop."""
  kernel = tf1.get_variable('v_kernel', [4, 4])
  _, x = tf1.while_loop(
      lambda i, _: i < 3, lambda i, x: (i + 1, tf.tanh(x @ kernel)),
      [0, features])
  return x + tf1.get_variable('v_bias', [4]) * tf1.get_variable('v_scale', [4])


def _branch(features):
  """A variable that a branch reads, and one without a gradient."""
  one, other = (tf1.get_variable(f'v_{name}', [4, 4]) for name in 'ab')
  tf1.get_variable('v_unused', [4])
  return tf1.cond(tf.reduce_sum(features) > 0.0,
                  lambda: features @ one, lambda: features @ other) + (
                      tf1.get_variable('v_bias', [4]))


def many(number):
  """Builds a model of small variables alone."""

  def build(features):
    return tf.add_n([
        features @ tf1.get_variable(f'v{index}', [4, 4])
        for index in range(number)])

  return build


def tables(number):
  """Builds a model of tables that are looked up with the same ids."""

  def build(features):
    ids = tf1.placeholder_with_default(tf.constant([1, 2, 2, 5]), [None])
    return features + tf.add_n([
        tf.nn.embedding_lookup(tf1.get_variable(f'v{index}', [7, 4]), ids)
        for index in range(number)])

  return build


def model_of(build, make_optimizer):

  def model_fn(features, labels, mode):
    del features, labels
    random = np.random.RandomState(0)
    with tf1.variable_scope('', initializer=tf1.random_uniform_initializer(
        -1.0, 1.0, seed=3)):
      outputs = build(tf.constant(random.standard_normal([4, 4]), tf.float32))
    loss = tf.reduce_mean(tf.square(outputs))
    train_op = make_optimizer().minimize(loss, tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(
        train_op, *tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)))

  return model_fn


def _forget(cluster):
  """Deletes the variables of former programs, that initial values may read."""
  tf1.Session.reset(cluster.target('worker', 0))


def by_strategy(make_strategy, cluster, model_fn):
  """Returns the messages of a step, and the variables after three steps."""
  _forget(cluster)
  worker = strategy_worker.StrategyWorker(
      make_strategy(tf.distribute.cluster_resolver.SimpleClusterResolver(
          cluster.cluster_spec, task_type='worker', task_id=0)),
      model_fn, cluster.target('worker', 0))
  sent = transfers.messages_of(worker.session, worker.spec.train_op)
  worker.step(2)
  with worker.graph.as_default():
    names = sorted(v.op.name for v in tf1.global_variables())
  values = {name: worker.value(name) for name in names}
  worker.close()
  return sent, values


def _by_session(decorate, cluster, model_fn):
  """Returns the same with a session and `replica_device_setter`."""
  _forget(cluster)
  with tf.Graph().as_default() as graph, tf1.device(cluster.device_setter(0)):
    tf1.train.get_or_create_global_step()
    spec = decorate(model_fn)(None, None, 'train')
    with cluster.session(0, graph) as session:
      session.run(tf1.global_variables_initializer())
      session.run(tf1.local_variables_initializer())
      session.run(tf1.tables_initializer())
      sent = transfers.messages_of(session, spec.train_op)
      for _ in range(2):
        session.run(spec.train_op)
      return sent, {
          v.op.name: session.run(v) for v in tf1.global_variables()}


def tensorflows(cluster_resolver):
  return tf1.distribute.experimental.ParameterServerStrategy(cluster_resolver)


def _clipping(cluster_resolver):
  return tfplugin.distribute.VariableClippingStrategy(
      tensorflows(cluster_resolver), {'v': [-1]}, 1.0)


def sgd():
  return tf1.train.GradientDescentOptimizer(0.25)


def _as_it_is(optimizer):
  return optimizer


def _drop(optimizer, **settings):
  return tfplugin.DropStaleGradientOptimizer(optimizer, 4, **settings)


def _clip(optimizer, **settings):
  return tfplugin.VariableClippingOptimizer(
      optimizer, {'v': [-1]}, 1.0, **settings)


class Form(NamedTuple):
  """How a model_fn is trained, and how its optimizer is wrapped."""

  train: Callable
  wrap: Callable = _as_it_is


def _hand(wrap, **settings):
  return Form(functools.partial(_by_session, _as_it_is),
              functools.partial(wrap, **settings))


FORMS = {
    'plain, strategy': Form(functools.partial(
        by_strategy,
        tfplugin.distribute.PackedParameterServerStrategy)),
    'drop, strategy': Form(functools.partial(by_strategy, functools.partial(
        tfplugin.distribute.DropStaleGradientStrategy, staleness=4))),
    'clip, strategy': Form(functools.partial(by_strategy, _clipping)),
    'drop, decorator': Form(functools.partial(
        _by_session, tfplugin.estimator.drop_stale_gradients(staleness=4))),
    'clip, decorator': Form(functools.partial(
        _by_session, tfplugin.estimator.clip_variables(
            rules={'v': [-1]}, max_norm=1.0))),
    'drop, optimizer': _hand(_drop),
    'drop, locked': _hand(_drop, use_locking=True),
    'clip, optimizer': _hand(_clip),
    'clip, locked': _hand(_clip, use_locking=True),
    'both, optimizer': _hand(lambda optimizer: _clip(_drop(optimizer))),
}
BY_HAND = frozenset(form for form in FORMS if form.endswith(
    ('optimizer', 'locked')))
PROGRAMS = {'layers': _layers, 'parts': _parts, 'loop': _loop,
            'branch': _branch}
OPTIMIZERS = {
    'sgd': sgd,
    'adam': lambda: tf1.train.AdamOptimizer(0.1),
}


def trained(form, cluster, build, make_optimizer=sgd):
  return trained_as(form, cluster, functools.partial(model_of, build),
                    make_optimizer)


def trained_as(form, cluster, make_model_fn, make_optimizer=sgd):
  """Trains the model_fn that is made for the wrapped optimizer of a form."""
  form = FORMS[form]
  return form.train(cluster, make_model_fn(
      lambda: form.wrap(make_optimizer())))
