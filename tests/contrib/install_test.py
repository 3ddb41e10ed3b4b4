# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.contrib` by its old name; estimator_names_test.py walks the spellings."""
# BUILD deps: //tfplugin:everything

from __future__ import annotations

import operator
import re

import pytest
import tensorflow as tf

from tests.compat import fresh_processes
from tfplugin import contrib


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


def test_the_modules_of_1_15_are_found():
  (result,) = fresh_processes.run('import tfplugin', ['''
import tensorflow.compat.v1 as tf, tfplugin
tf.disable_v2_behavior()
tfplugin.contrib.install()
from tensorflow.contrib.estimator.python.estimator import replicate_model_fn
from tensorflow_estimator.contrib.estimator.python.estimator import (
    replicate_model_fn as itself)
for module in (replicate_model_fn, itself):
  assert module.replicate_model_fn is tfplugin.replicate_model_fn
  assert module.TowerOptimizer is tfplugin.TowerOptimizer
from tensorflow.contrib.opt.python.training import (
    elastic_average_optimizer as e)
assert e.GLOBAL_VARIABLE_NAME == 'global_center_variable'
assert tf.contrib.opt.GLOBAL_VARIABLE_NAME == 'global_center_variable'
assert tf.contrib.opt.LOCAL_VARIABLE_NAME == 'local_center_variable'
'''])
  assert not result.errors


@pytest.mark.parametrize('name, words', [
    ('slim', 'pip install tf-slim'), ('layers', 'tf.compat.v1.layers'),
    ('cluster_resolver', 'tf.compat.v1.distribute.cluster_resolver'),
    ('seq2seq', 'https://www.tensorflow.org/guide/migrate')])
def test_what_replaces_another_module_is_named(name, words):
  with pytest.raises(AttributeError, match=re.escape(words)):
    getattr(contrib, name)


def test_places_that_replace_other_modules_are_there():
  places = re.findall(r'`tf\.([\w.]+)`', ' '.join(contrib._ELSEWHERE.values()))
  assert len(places) == 8
  for place in places:
    assert operator.attrgetter(place)(tf)


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
