# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which Keras `tf.keras` is before and after Estimator is loaded.

A model of tf-keras is that of the centre with and without Estimator.
"""
# BUILD deps: //tfplugin:everything

from __future__ import annotations

import importlib.util
import os

import pytest
import tensorflow as tf

from tests.compat import fresh_processes
from tfplugin.compat import keras_choice

# TensorFlow 2.15 has Keras 2 itself, and needs no choice.
_HAS_CHOICE = not tf.__version__.startswith('2.15.')

_LOAD = '''
import os, sys
import tensorflow as tf
import tfplugin
{before}
before = dict(os.environ)
try:
  tf.estimator.Estimator
except ImportError as error:
  print(error)
else:
  from tensorflow.keras import layers
  import tensorflow.compat.v1 as tf1
  print(*(cls.__module__.split('.')[0] for cls in (
      tf.keras.layers.Dense, layers.Dense, tf.losses.Loss,
      tf1.keras.layers.Dense)))
assert dict(os.environ) == before
'''
_LAYER_OF_V1 = '''
assert tf.compat.v1.layers.Dense.__module__.split('.')[0] in {names}
from tensorflow.compat.v1 import layers
from tensorflow.compat.v1.nn import rnn_cell
assert rnn_cell.GRUCell.__module__.split('.')[0] in {names}
'''
_SWITCHED = 'tf_keras tf_keras tf_keras tf_keras\n'
_UNCHANGED = 'keras keras keras keras\n'
_TOO_LATE = 'this process has used `tf.keras` as Keras 3 already'

# What a program does before it uses Estimator, and what it gets where there is
# a choice; all is Keras 2 on TensorFlow 2.15.
_PROGRAMS = {
    '': _SWITCHED,
    'import keras; keras.layers.Dense(1)': _SWITCHED,
    'import tf_keras; tf_keras.layers.Dense(1)': _SWITCHED,
    'import tensorflow_estimator': _SWITCHED,
    'os.environ["TF_USE_LEGACY_KERAS"] = "1"; tf.keras.layers': _SWITCHED,
    'repr(tf.keras)': _SWITCHED,
    'tf.keras.estimator.model_to_estimator': _SWITCHED,
    'tf.compat.v1.keras.estimator.model_to_estimator': _SWITCHED,
    # As tensorflow-probability and tensorflow-hub ask.
    'assert tf.keras.version()[0] == "3"': _SWITCHED,
    'assert tf.compat.v2.keras.version()[0] == "3"; import keras': _SWITCHED,
    'assert tf.keras.version(); tf.keras.layers': _TOO_LATE,
    'tf.keras.layers': _TOO_LATE,
    'tf.losses.Loss': _TOO_LATE,
    'tf.compat.v1.keras.Model': _TOO_LATE,
    'from tensorflow.keras import layers': _TOO_LATE,
    'sys.modules["tf_keras"] = None': 'pip install "tf-keras==',
}


def _expected(before, with_choice):
  return with_choice if _HAS_CHOICE else _UNCHANGED


def test_the_first_use_of_estimator_chooses():
  # What only a TensorFlow with a choice has.
  words = ('tf_keras', 'environ', 'version')
  programs = {before: wanted for before, wanted in _PROGRAMS.items()
              if _HAS_CHOICE or not any(word in before for word in words)}
  if not _HAS_CHOICE:  # They are all alike.
    programs = dict(list(programs.items())[::3])
  results = fresh_processes.run('import tensorflow', [
      _LOAD.format(before=before) for before in programs])
  for (before, wanted), result in zip(programs.items(), results):
    assert not result.errors, before
    assert _expected(before, wanted) in result.printed, before


def test_refusals_name_the_remedy():
  (result,) = fresh_processes.run(
      'import tensorflow', [_LOAD.format(before='tf.keras.layers')])
  if _HAS_CHOICE:
    assert 'pip install tf-keras' in result.printed
    assert 'TF_USE_LEGACY_KERAS=1' in result.printed
  else:
    assert result.printed == _UNCHANGED


@pytest.mark.parametrize('value', ['0', 'False'])
def test_the_users_choice_of_keras_3_is_respected(value):
  (result,) = fresh_processes.run('import tensorflow', ['''
import tensorflow as tf
import tfplugin
assert tf.estimator.Estimator
print(3 if hasattr(tf.keras, 'ops') else 2)
'''], TF_USE_LEGACY_KERAS=value)
  assert result.printed == ('3\n' if _HAS_CHOICE else '2\n'), result.errors


def test_layers_and_cells_of_v1_are_switched_too():
  names = ['tf_keras'] if _HAS_CHOICE else ['keras']
  (result,) = fresh_processes.run('import tensorflow', [
      _LOAD.format(before='') + _LAYER_OF_V1.format(names=names)])
  assert not result.errors


def test_a_program_without_estimator_is_left_alone():
  (result,) = fresh_processes.run('import tensorflow', ['''
import sys
import tensorflow as tf
import tfplugin
tf.keras.layers.Dense(1)
with tf.Graph().as_default():
  v = tf.compat.v1.get_variable('v', [2])
  tfplugin.VariableClippingOptimizer(
      tf.compat.v1.train.GradientDescentOptimizer(.1), {v: [0]}, 1.
  ).minimize(tf.reduce_sum(v))
print(3 if hasattr(tf.keras, 'ops') else 2)
assert not [m for m in sys.modules if m.startswith('tensorflow_estimator')]
'''])
  assert result.printed == ('3\n' if _HAS_CHOICE else '2\n'), result.errors


_MODELS = '''
import os, sys
import tensorflow as tf
import tfplugin
try:
  {uses}
except ImportError as error:
  print(error)
'''
_MODEL_TO_ESTIMATOR = 'tf.keras.estimator.model_to_estimator'
_IMPORTED = 'from tensorflow.keras.estimator import model_to_estimator'
_USES_OF_MODELS = {
    f'tf.keras.Model; {_MODEL_TO_ESTIMATOR}': _TOO_LATE,
    f'tf.compat.v1.keras.Model; tf.compat.v1{_MODEL_TO_ESTIMATOR[2:]}':
        _TOO_LATE,
    f'from tensorflow.keras import Model; {_IMPORTED}': _TOO_LATE,
    _IMPORTED: _TOO_LATE,
    f'sys.modules["tf_keras"] = None; {_MODEL_TO_ESTIMATOR}':
        'pip install "tf-keras==',
    'os.environ["TF_USE_LEGACY_KERAS"] = "0"; sys.modules["tf_keras"] = None; '
    f'{_MODEL_TO_ESTIMATOR}': 'pip install "tf-keras==',
    f'tf.estimator.Estimator; {_IMPORTED}': '',
    f'os.environ["TF_USE_LEGACY_KERAS"] = "0"; {_MODEL_TO_ESTIMATOR}': '',
    'assert "tf_keras" not in sys.modules': '',
}


def test_models_of_keras_for_estimator_work_or_name_the_remedy():
  results = fresh_processes.run('import tensorflow', [
      _MODELS.format(uses=uses) for uses in _USES_OF_MODELS])
  for (uses, wanted), result in zip(_USES_OF_MODELS.items(), results):
    assert not result.errors, uses
    if _HAS_CHOICE:
      assert wanted in result.printed, uses
    assert bool(result.printed) is bool(_HAS_CHOICE and wanted), uses


def test_a_variable_that_is_gone_already_is_no_error(monkeypatch):
  monkeypatch.delenv(keras_choice.VARIABLE, raising=False)
  with keras_choice._variable_set():
    del os.environ[keras_choice.VARIABLE]
  assert keras_choice.VARIABLE not in os.environ


_CONFIG = keras_choice.config
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
    keras_choice.exempt_from_autograph()
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
