# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Strategies outside Estimator: `strategy.run`, and Keras models.

Strategies that can train so do, with v1 optimizers and with both kinds of Keras
optimizers; numpy computes the weights from each strategy's rule.
"""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import distribute

tf1 = tf.compat.v1

DEVICES = ['/cpu:0', '/cpu:1']
RATE = 0.1
MOMENTUM = 0.5
MAX_NORM = 1.25
MOVING_RATE = 0.3
PERIOD = 2

STRATEGIES = {
    'tower': lambda: distribute.TowerStrategy(DEVICES),
    'cross_shard': lambda: distribute.CrossShardStrategy(DEVICES),
    'clipping': lambda: distribute.VariableClippingStrategy(
        tf.distribute.MirroredStrategy(
            DEVICES, tf.distribute.ReductionToOneDevice()),
        {'w|kernel': 0}, MAX_NORM),
    'elastic': lambda: distribute.ElasticAverageStrategy(
        devices=DEVICES, communication_period=PERIOD,
        moving_rate=MOVING_RATE),
}

OPTIMIZERS = {
    'v1': lambda: tf1.train.MomentumOptimizer(RATE, MOMENTUM),
    'legacy': lambda: tf.keras.optimizers.legacy.SGD(RATE, MOMENTUM),
    'keras': lambda: tf.keras.optimizers.SGD(RATE, MOMENTUM),
}

X = np.random.RandomState(0).randn(12, 2).astype(np.float32)
Y = X @ np.array([[2.0], [-1.0]], np.float32)
BATCH = 4


class Reference:
  """A strategy's rule in numpy, over two devices.

  Attributes:
    value: What the model is outside the devices: the centre, or the variable.
  """

  def __init__(self, strategy, start):
    self._strategy = strategy
    self.value = np.asarray(start, np.float64)
    self._copies = [self.value.copy() for _ in DEVICES]
    self._momenta = [np.zeros_like(self.value) for _ in DEVICES]
    self._steps = 0

  def step(self, gradient_of, scale=1.0):
    """`gradient_of(copy, device)`; `scale` is that of the sum over devices."""
    gradients = [gradient_of(c, i) for i, c in enumerate(self._copies)]
    if self._strategy != 'elastic':
      gradients = [scale * sum(gradients)] * len(DEVICES)
    for i, gradient in enumerate(gradients):
      self._momenta[i] = MOMENTUM * self._momenta[i] + gradient
      self._copies[i] = self._copies[i] - RATE * self._momenta[i]
      if self._strategy == 'clipping':
        norm = np.linalg.norm(self._copies[i], axis=0, keepdims=True)
        self._copies[i] = self._copies[i] * np.minimum(1, MAX_NORM / norm)
    self._steps += 1
    if self._strategy != 'elastic':
      self.value = self._copies[0]
    elif self._steps % PERIOD == 0:
      moves = [MOVING_RATE * (c - self.value) for c in self._copies]
      self._copies = [c - m for c, m in zip(self._copies, moves)]
      self.value = self.value + sum(moves)


def make_model(optimizer):
  model = tf.keras.Sequential([tf.keras.layers.Dense(
      1, use_bias=False, input_shape=(2,), kernel_initializer='ones')])
  model.compile(optimizer, 'mse', metrics=['mae'])
  return model


def fitted(strategy, epochs):
  """The kernel that `Model.fit` trains: each device has half of each batch."""
  reference = Reference(strategy, np.ones([2, 1]))
  for start in list(range(0, len(X), BATCH)) * epochs:
    def gradient(kernel, device, start=start):
      rows = slice(start + 2 * device, start + 2 * device + 2)
      return X[rows].T @ (X[rows] @ kernel - Y[rows])  # 2 / 2 rows
    reference.step(gradient, scale=0.5)
  return reference.value


@pytest.mark.sampled(3)
@pytest.mark.parametrize('optimizer', OPTIMIZERS)
@pytest.mark.parametrize('strategy', STRATEGIES)
def test_fit_evaluate_and_predict_equal_numpy(strategy, optimizer):
  with STRATEGIES[strategy]().scope():
    model = make_model(OPTIMIZERS[optimizer]())
  history = model.fit(X, Y, batch_size=BATCH, epochs=2, shuffle=False,
                      verbose=0).history
  kernel = fitted(strategy, 2)
  np.testing.assert_allclose(model.get_weights()[0], kernel, rtol=1e-5)
  assert len(history['loss']) == 2 and history['loss'][1] > 0
  # 11 rows in batches of 4: the last one is not full.
  errors = X[:11] @ kernel - Y[:11]
  np.testing.assert_allclose(
      model.evaluate(X[:11], Y[:11], batch_size=BATCH, verbose=0),
      [np.mean(errors**2), np.mean(np.abs(errors))], rtol=1e-4)
  np.testing.assert_allclose(
      model.predict(X[:11], batch_size=BATCH, verbose=0), X[:11] @ kernel,
      rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_weights_and_models_are_saved_as_without_strategy(strategy, tmp_path):
  made = STRATEGIES[strategy]()
  with made.scope():
    model = make_model(OPTIMIZERS['keras']())
  model.fit(X, Y, batch_size=BATCH, epochs=2, shuffle=False, verbose=0)
  weights, whole = str(tmp_path / 'weights'), str(tmp_path / 'model.keras')
  model.save_weights(weights)
  model.save(whole)
  plain = make_model('sgd')
  plain.load_weights(weights).expect_partial()
  loaded = tf.keras.models.load_model(whole)
  kernel = fitted(strategy, 2)
  np.testing.assert_allclose(plain.get_weights()[0], kernel, rtol=1e-5)
  np.testing.assert_allclose(loaded.get_weights()[0], kernel, rtol=1e-5)
  # And back: every device's copy is what is loaded.
  plain.set_weights([np.array([[0.5], [0.25]])])
  plain.save_weights(weights)
  model.load_weights(weights).expect_partial()
  copies = made.experimental_local_results(made.run(
      lambda: tf.identity(model.layers[0].kernel)))
  assert len(copies) == len(DEVICES)
  for copy in copies:
    assert copy.numpy().tolist() == [[0.5], [0.25]]


TARGETS = np.array([[3.0, -2.0], [1.0, 4.0]])


@pytest.mark.sampled(3)
@pytest.mark.parametrize('wrap', [tf.function, lambda f: f],
                         ids=['tf_function', 'eager'])
@pytest.mark.parametrize('optimizer', OPTIMIZERS)
@pytest.mark.parametrize('strategy', STRATEGIES)
def test_strategy_run_equals_numpy(strategy, optimizer, wrap):
  made = STRATEGIES[strategy]()
  with made.scope():
    w = tf.Variable([1.0, 1.0], name='w')
    opt = OPTIMIZERS[optimizer]()

  def step():
    index = tf.distribute.get_replica_context().replica_id_in_sync_group
    target = tf.gather(tf.constant(TARGETS, tf.float32), index)
    opt.minimize(
        lambda: 0.5 * tf.reduce_sum(tf.square(w - target)), var_list=[w])

  train = wrap(lambda: made.run(step))
  # Gradients are summed; only a v1 optimizer is told to take their mean.
  scale = 0.5 if (strategy, optimizer) == ('cross_shard', 'v1') else 1.0
  reference = Reference(strategy, [1.0, 1.0])
  for _ in range(4):
    train()
    reference.step(lambda copy, device: copy - TARGETS[device], scale)
    np.testing.assert_allclose(w.numpy(), reference.value, rtol=1e-5)

