# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What Keras does for a mirrored strategy alone, under CrossShardStrategy.

The model is y = x1 w1 + x2 w2 + b from 0, with ones for x and y. The three
weights stay the same, w, and a step of SGD at 0.1 adds 0.2 (1 - 3 w): 0.2,
0.28, 0.312, 0.3248.
"""

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.distribute.shards import cross_shard_strategy

_X = np.ones([8, 2], np.float32)
_Y = np.ones([8, 1], np.float32)


@pytest.fixture
def policy():
  """Lets a test set Keras' global policy."""
  yield tf.keras.mixed_precision.set_global_policy
  tf.keras.mixed_precision.set_global_policy('float32')


def _compiled(make_optimizer):
  strategy = cross_shard_strategy.CrossShardStrategy(['CPU:0', 'CPU:1'])
  with strategy.scope():
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(1, kernel_initializer='zeros')])
    model.compile(make_optimizer(), 'mse')
  return model


def _fit(model, epochs, **kwargs):
  """Takes two steps in each epoch; returns the weights."""
  model.fit(_X, _Y, batch_size=4, epochs=epochs, verbose=0, shuffle=False,
            **kwargs)
  return np.concatenate([weight.ravel() for weight in model.get_weights()])


@pytest.mark.parametrize('make_optimizer', [
    lambda: tf.keras.optimizers.SGD(0.1),
    lambda: tf.keras.optimizers.legacy.SGD(0.1),
])
@pytest.mark.parametrize('name', ['mixed_float16', 'mixed_bfloat16'])
def test_mixed_precision(policy, name, make_optimizer):
  policy(name)
  weights = _fit(_compiled(make_optimizer), epochs=2)
  # A half has 11 significant bits, a bfloat16 8; gradients are of that type.
  np.testing.assert_allclose(
      weights, [0.3248] * 3, rtol=2e-3 if name == 'mixed_float16' else 2e-2)


def test_loss_scale_without_a_policy():
  weights = _fit(_compiled(lambda: tf.keras.mixed_precision.LossScaleOptimizer(
      tf.keras.optimizers.SGD(0.1))), epochs=2)
  np.testing.assert_allclose(weights, [0.3248] * 3, rtol=1e-5)


class _Interrupted(tf.keras.callbacks.Callback):

  def on_epoch_begin(self, epoch, logs=None):
    if epoch == 1:
      raise KeyboardInterrupt


def test_an_interrupted_fit_goes_on(tmp_path):
  def backup():
    return tf.keras.callbacks.BackupAndRestore(str(tmp_path))

  def optimizer():
    return tf.keras.optimizers.SGD(0.1)

  with pytest.raises(KeyboardInterrupt):
    _fit(_compiled(optimizer), epochs=2, callbacks=[backup(), _Interrupted()])
  model = _compiled(optimizer)
  weights = _fit(model, epochs=2, callbacks=[backup()])
  np.testing.assert_allclose(weights, [0.3248] * 3, rtol=1e-5)
  assert model.optimizer.iterations.numpy() == 4
