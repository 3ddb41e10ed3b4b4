# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model of tf-keras is that of the centre with and without Estimator."""
# BUILD deps: //tfplugin:everything

from __future__ import annotations

import importlib.util

import pytest

from tests.compat import fresh_processes
from tfplugin.compat import keras_conversion

_CONFIG = keras_conversion.config
# TensorFlow 2.15 has no other Keras than that, and needs no package for it.
_CHOICE = ({'TF_USE_LEGACY_KERAS': '1'}
           if importlib.util.find_spec('tf_keras') else {})

_PROGRAM = '''
{before}
import tensorflow as tf
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices('CPU')[0],
    [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tfplugin.distribute.ElasticAverageStrategy(
    communication_period=2, devices=['/cpu:0', '/cpu:1'])
with strategy.scope():
  model = tf.keras.Sequential([tf.keras.layers.Dense(
      1, use_bias=False, kernel_initializer='ones', input_shape=(1,))])
  model.compile(tf.keras.optimizers.legacy.SGD(.1), 'mse')
x, y = tf.ones([2, 1]), tf.fill([2, 1], 5.0)
# The copies go from 1 to 1 + .1 * 2 * 4 = 1.8, and the centre stays.
model.fit(x, y, batch_size=2, verbose=0)
print(model.evaluate(x, y, batch_size=2, verbose=0))
print(model.predict(x, batch_size=2, verbose=0).tolist())
'''


@pytest.mark.parametrize('rules', [
    (), (_CONFIG.DoNotConvert('keras'),), (_CONFIG.DoNotConvert('tf_keras'),)])
def test_the_rule_is_there_once(monkeypatch, rules):
  monkeypatch.setattr(_CONFIG, 'CONVERSION_RULES', rules)
  for _ in range(2):
    keras_conversion.exempt()
  added = [str(rule) for rule in _CONFIG.CONVERSION_RULES
           if str(rule) == str(_CONFIG.DoNotConvert('tf_keras'))]
  assert len(added) == 1
  assert _CONFIG.CONVERSION_RULES[:len(rules)] == rules


def test_keras_evaluates_the_centre():
  results = fresh_processes.run(
      'import tensorflow',
      [_PROGRAM.format(before=before) for before in (
          'import tfplugin.distribute',
          'import tensorflow, tfplugin.distribute; '
          'tensorflow.estimator.Estimator')],
      **_CHOICE)
  for result in results:
    # (1 - 5) ** 2
    assert result.printed == '16.0\n[[1.0], [1.0]]\n', result.errors
