# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.contrib` by its old name; estimator_names_test.py walks the spellings."""
# BUILD deps: //tfplugin:everything

from __future__ import annotations

from tests.compat import fresh_processes


def test_without_it_there_is_no_contrib():
  (result,) = fresh_processes.run('import tfplugin', ['''
import tensorflow as tf
assert not hasattr(tf, 'contrib')
'''])
  assert not result.errors


def test_it_may_be_called_again_and_keeps_what_is_there():
  results = fresh_processes.run('import tfplugin', ['''
import sys, tfplugin
import tensorflow as tf
for _ in range(2):
  tfplugin.contrib.install()
  finders = len(sys.meta_path)
assert len(sys.meta_path) == finders
assert tf.contrib.opt.VariableClippingOptimizer
''', '''
import tensorflow as tf, tfplugin
tf.contrib = 3
tfplugin.contrib.install()
assert tf.contrib == 3
'''])
  assert not [result.errors for result in results if result.errors]


def test_what_contrib_has_no_more_is_refused():
  (result,) = fresh_processes.run('import tfplugin', ['''
import tensorflow as tf, tfplugin
tfplugin.contrib.install()
try:
  tf.contrib.layers
except AttributeError as error:
  print(error)
try:
  import tensorflow.contrib.layers
except ModuleNotFoundError as error:
  print(error.name)
'''])
  assert 'no `contrib.layers`. It holds contrib.data' in result.printed
  assert result.printed.endswith('tensorflow.contrib.layers\n')
