# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small models, one per way of making variables, and optimizers for them.

No model uses tfplugin. Each starts from the same values everywhere, and has a
loss whose gradients are neither zero nor constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import Callable

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

_FEATURES = np.linspace(-1.0, 1.0, 24, dtype=np.float32).reshape(6, 4)
_LABELS = np.linspace(2.0, -1.0, 18, dtype=np.float32).reshape(6, 3)
_IDS = np.array([0, 2, 2, 5, 0, 3])


def _initial(shape, dtype=tf.float32, **kwargs):
  """Returns initial values that are not random: 0.1, 0.2, ..., by rows."""
  del kwargs
  shape = [int(size) for size in shape]
  values = 0.1 * np.arange(1, 1 + np.prod(shape, dtype=int))
  return tf.constant(values.reshape(shape), dtype)


def _get_variable(x):
  w = tf1.get_variable('w', [4, 3], initializer=_initial)
  b = tf1.get_variable('b', [3], initializer=tf1.zeros_initializer())
  return tf.matmul(x, w) + b


def _layers(x):
  hidden = tf1.layers.dense(x, 3, kernel_initializer=_initial)
  return tf1.layers.batch_normalization(hidden, training=True)


def _keras(x):
  hidden = tf.keras.layers.Dense(3, kernel_initializer=_initial)(x)
  norm = tf.keras.layers.BatchNormalization(momentum=0.9)
  result = norm(hidden, training=True)
  for update in norm.updates:
    tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
  return result


def _variable(x):
  w = tf.Variable(_initial([4, 3]), name='w')
  b = tf.Variable(tf.zeros([3]), name='b')
  return tf.matmul(x, w) + b


def _partitioned(x):
  with tf1.variable_scope(
      'parts', partitioner=tf1.fixed_size_partitioner(2)):
    w = tf1.get_variable('w', [4, 3], initializer=tf1.ones_initializer())
  return tf.matmul(x, w)


def _embedding(x):
  table = tf1.get_variable('table', [8, 3], initializer=_initial)
  return tf.nn.embedding_lookup(table, _IDS) * (1.0 + x[:, :1])


MODELS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    'get_variable': _get_variable,
    'tf.layers': _layers,
    'Keras': _keras,
    'tf.Variable': _variable,
    'partitioned': _partitioned,
    'sparse embedding': _embedding,
}

OPTIMIZERS: dict[str, Callable[[], tf1.train.Optimizer]] = {
    'SGD': lambda: tf1.train.GradientDescentOptimizer(0.1),
    'Momentum': lambda: tf1.train.MomentumOptimizer(0.1, 0.9),
    'Adam': lambda: tf1.train.AdamOptimizer(0.1),
}


def scope_of(model: str) -> str:
  """Returns the scope of a model's variables."""
  return model.replace(' ', '_')


def model_fn_of(optimizer: str) -> Callable[..., Any]:
  """Returns a model_fn that trains all `MODELS` side by side.

  They share no variable, and the loss is the sum of their losses. Each trains
  as it would alone, in one graph and session for all.
  """

  def model_fn(features, labels, mode):
    del features, labels
    losses = []
    for model, predict in MODELS.items():
      with tf1.variable_scope(scope_of(model)):
        prediction = predict(tf.constant(_FEATURES))
      losses.append(tf.reduce_mean(
          tf.square(prediction - tf.constant(_LABELS))))
    loss = tf.add_n(losses)
    updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(updates):
      train_op = OPTIMIZERS[optimizer]().minimize(
          loss, tf1.train.get_global_step())
    return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  return model_fn


def train_without_strategy(model_fn: Callable[..., Any], steps: Sequence[int],
                           prefix: str) -> dict[int, dict[str, np.ndarray]]:
  """Trains on one device; returns checkpoints' values by step and name.

  `steps` ascend, and `prefix` is the path of the checkpoints.
  """
  with tf.Graph().as_default() as graph:
    tf1.train.get_or_create_global_step()
    spec = model_fn(None, None, 'train')
    saver = tf1.train.Saver()
    with tf1.Session(graph=graph) as session:
      session.run(tf1.global_variables_initializer())
      contents = {}
      for last, step in zip((0, *steps), steps):
        for _ in range(step - last):
          session.run(spec.train_op)
        contents[step] = contents_of(saver.save(
            session, prefix, step, write_meta_graph=False))
  return contents


def contents_of(checkpoint: str) -> dict[str, np.ndarray]:
  """Returns the values in a checkpoint, by name."""
  reader = tf.train.load_checkpoint(checkpoint)
  return {name: reader.get_tensor(name)
          for name in reader.get_variable_to_shape_map()}
