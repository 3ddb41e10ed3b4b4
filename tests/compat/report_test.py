# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report says what is installed, and changes nothing."""

from __future__ import annotations

import platform

import pytest
import tensorflow as tf

import tfplugin
from tests.compat import fresh_processes
from tfplugin.compat import report

_HAS_CHOICE = not tf.__version__.startswith('2.15.')
_CHECK = '{before}\nimport tfplugin; tfplugin.check()'
# What a program does first, and a line of the report where Keras is chosen.
_PROGRAMS = {
    'import tensorflow as tf': 'tf.keras: not used yet; tf-keras when',
    'import tensorflow as tf; tf.keras.layers': 'tf.keras: Keras 3, in use',
    'import tfplugin, tensorflow as tf; tf.estimator.Estimator':
        'tf.keras: tf-keras, in use',
    'import os; os.environ["TF_USE_LEGACY_KERAS"] = "0"':
        'tf.keras: Keras 3, by TF_USE_LEGACY_KERAS=0',
}


def test_versions_and_devices_are_printed(capsys):
  tfplugin.check()
  printed = capsys.readouterr().out
  assert f'tfplugin {tfplugin.__version__}, Python 3.' in printed
  assert f'TensorFlow {tf.__version__} (needed: >= 2.15.0, < 2.22.0)' in printed
  assert 'tensorflow-estimator 2.15.0\n' in printed
  assert 'devices: /physical_device:CPU:0' in printed
  assert 'Estimator: yes\n' in printed
  assert f'system: {platform.platform()}, ' in printed
  assert 'tfplugin-train and the progress bar: yes\n' in printed


def test_the_private_names_are_looked_up_for_the_program():
  assert report.lines(True)[-1] == 'private names of TensorFlow: all are there'


def test_the_keras_in_use_is_told():
  results = fresh_processes.run(
      'import tensorflow', [_CHECK.format(before=b) for b in _PROGRAMS])
  for wanted, result in zip(_PROGRAMS.values(), results):
    assert (wanted if _HAS_CHOICE else 'tf.keras: Keras 2') in result.printed


def test_where_estimator_cannot_be_loaded_the_reason_is_told():
  (result,) = fresh_processes.run('import tensorflow', [_CHECK.format(
      before='import tensorflow as tf; tf.keras.layers')])
  wanted = ('Estimator: no: Estimator needs Keras 2' if _HAS_CHOICE
            else 'Estimator: yes')
  assert wanted in result.printed


@pytest.mark.parametrize('module, line', [
    ('tensorboard', 'tf.summary of TensorFlow 2: no: `pip install tensorboard'),
    ('tensorflow_estimator', 'Estimator: no: `pip install'),
    ('rich', "tfplugin-train and the progress bar: no: `pip install 'tfplugin["
             "train]'`"),
    ('plotly', "tfplugin-report: no: `pip install 'tfplugin[report]'`"),
])
def test_what_is_missing_is_told_with_the_command(monkeypatch, module, line):
  find = report.importlib.util.find_spec
  monkeypatch.setattr(report.importlib.util, 'find_spec',
                      lambda name: None if name == module else find(name))
  assert any(line in printed for printed in report.lines())
