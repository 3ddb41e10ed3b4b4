# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Model_fns without tfplugin, and runs that show the effect of a decorator."""

from __future__ import annotations

import inspect
from typing import Any
from typing import Callable

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

STYLES = ('minimize', 'clip_by_hand', 'tf_gradients', 'two_optimizers')
STEPS = 4

_X = np.array([[[1.0, -2.0], [0.5, 3.0], [-1.5, 1.0], [2.0, 0.25]],
               [[0.3, 1.0], [2.0, -1.0], [1.0, 1.0], [-0.7, 0.1]],
               [[-1.0, 0.2], [0.4, 0.6], [3.0, -0.5], [0.9, 2.0]],
               [[1.1, 1.2], [-0.2, 0.8], [0.6, -1.4], [1.5, 0.3]]], np.float32)
_Y = _X @ np.array([[2.0], [-3.0]], np.float32) + 1.0


def batches() -> tf.data.Dataset:
  """Returns four batches of four rows: features `[4, 2]`, labels `[4, 1]`."""
  return tf.data.Dataset.from_tensor_slices((_X, _Y))


def first_batch() -> tuple[np.ndarray, np.ndarray]:
  """Returns the first of `batches()`, in float64."""
  return _X[0].astype(np.float64), _Y[0].astype(np.float64)


def momentum() -> tf1.train.Optimizer:
  """Returns the optimizer of most tests: it has a slot."""
  return tf1.train.MomentumOptimizer(0.125, 0.5)


def regression(style: str = 'minimize',
               make_optimizer: Callable[[], tf1.train.Optimizer] = momentum,
               wrap: Callable | None = None) -> Callable[..., Any]:
  """Returns a model_fn of a linear regression.

  It applies gradients in a `style` of `STYLES`. `make_optimizer` is called
  inside the model_fn, and `wrap` wraps each optimizer.
  """

  def model_fn(features, labels, mode):
    weight = tf1.get_variable('weight', initializer=[[0.5], [-0.25]])
    bias = tf1.get_variable('bias', initializer=[0.125])
    prediction = features @ weight + bias
    if mode == tf.estimator.ModeKeys.PREDICT:
      return tf.estimator.EstimatorSpec(mode, {'y': prediction})
    loss = tf.reduce_mean(tf.square(prediction - labels))
    if mode == tf.estimator.ModeKeys.EVAL:
      return tf.estimator.EstimatorSpec(mode, loss=loss)
    train_op = apply(style, loss, weight, bias,
                     lambda: (wrap or (lambda o: o))(make_optimizer()))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  return model_fn


def apply(style: str, loss: tf.Tensor, weight: tf.Variable, bias: tf.Variable,
          make: Callable[[], tf1.train.Optimizer]) -> tf.Operation:
  """Returns the train_op of a model, in a `style` of `STYLES`."""
  step = tf1.train.get_global_step()
  optimizer = make()
  if style == 'minimize':
    return optimizer.minimize(loss, step)
  if style == 'two_optimizers':
    first = optimizer.minimize(loss, step, var_list=[weight])
    return tf.group(first, make().minimize(loss, var_list=[bias]))
  if style == 'clip_by_hand':
    gradients, variables = zip(*optimizer.compute_gradients(loss))
  else:
    variables = [weight, bias]
    gradients = tf1.gradients(loss, variables)
  gradients, _ = tf.clip_by_global_norm(gradients, 2.0)
  return optimizer.apply_gradients(zip(gradients, variables), step)


def call(model_fn: Callable[..., Any], mode: str, features: Any,
         labels: Any = None) -> Any:
  """Calls a model_fn with the arguments that it takes, as Estimator does."""
  given = dict(features=features, labels=labels, mode=mode, params={},
               config=None)
  wanted = inspect.signature(model_fn).parameters
  return model_fn(**{k: v for k, v in given.items() if k in wanted})


def train(model_fn: Callable[..., Any], steps: int = STEPS,
          dataset: Callable[[], tf.data.Dataset] = batches,
          ) -> dict[str, np.ndarray]:
  """Trains in one process; returns all variables by name, and `'losses'`.

  The losses are one for each step; the dataset is repeated as needed.
  """
  with tf.Graph().as_default():
    tf1.train.create_global_step()
    features, labels = tf1.data.make_one_shot_iterator(
        dataset().repeat()).get_next()
    spec = call(model_fn, tf.estimator.ModeKeys.TRAIN, features, labels)
    variables = _reads()
    hooks = [*spec.training_hooks, *spec.training_chief_hooks]
    with tf1.train.SingularMonitoredSession(hooks, spec.scaffold) as session:
      losses = [session.run([spec.loss, spec.train_op])[0]
                for _ in range(steps)]
      values = session.raw_session().run(variables)
  return {**values, 'losses': np.array(losses)}


def _reads() -> dict[str, tf.Tensor]:
  """Returns reads of all variables by name.

  A copy under elastic averaging has the name of its centre. The centre is then
  listed as `tfplugin.ElasticAverageOptimizer` names it.
  """
  copies = {v.op.name for v in tf1.local_variables() if hasattr(v, 'center')}
  reads = {f'global_center_variable/{v.op.name}' if v.op.name in copies
           else v.op.name: v.read_value() for v in tf1.global_variables()}
  reads.update((v.op.name, v.read_value()) for v in tf1.local_variables())
  return reads


def assert_equal(actual: dict, expected: dict) -> None:
  """Raises unless two results of `train` have the same names and bits."""
  np.testing.assert_equal(sorted(actual), sorted(expected))
  for name, value in expected.items():
    np.testing.assert_array_equal(actual[name], value, err_msg=name)
