# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks that `import tfplugin` and a training load what they need alone."""
# BUILD deps: //tfplugin:everything

from __future__ import annotations

import ast
import json
import os
import pathlib
import pickle
import subprocess
import sys

import pytest

import tfplugin

# TensorFlow loads these on first use; tfplugin must leave that to the user.
_HEAVY = ('keras', 'matplotlib', 'psutil', 'rich', 'tensorboard',
          'tensorflow_estimator', 'tf_keras')
_TOOLS = ('tfplugin.bin', 'tfplugin.faults', 'tfplugin.report',
          'tfplugin.testing')
_MOST_MODULES = 60
_PROGRAM = """
import json, sys
import tensorflow as tf
before = set(sys.modules)
import tfplugin
%s
print(json.dumps(sorted(set(sys.modules) - before)))
"""
_EVERY_CORE_PACKAGE = """
for package in ('checkpoints', 'compat', 'contrib', 'distribute', 'estimator',
                'events', 'hooks', 'ops', 'optimizers', 'types'):
  getattr(tfplugin, package)
for name in tfplugin.contrib.__all__:
  getattr(tfplugin.contrib, name)
"""
_TRAINING = """
import tempfile
tf1 = tf.compat.v1
def model_fn(features, labels, mode):
  weight = tf1.get_variable('weight', initializer=4.0)
  loss = tf.square(weight)
  return tf.estimator.EstimatorSpec(
      mode, loss=loss,
      train_op=tf1.train.GradientDescentOptimizer(0.25).minimize(
          loss, global_step=tf1.train.get_global_step()))
def input_fn():
  return tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat()
with tempfile.TemporaryDirectory() as model_dir:
  tfplugin.estimator.train_and_evaluate(
      tf.estimator.Estimator(model_fn, model_dir),
      tf.estimator.TrainSpec(input_fn, max_steps=1),
      tf.estimator.EvalSpec(input_fn, steps=1, throttle_secs=0))
"""


def _modules_that_tfplugin_adds(program: str = '', **variables) -> list:
  path = os.pathsep.join(filter(None, sys.path))
  result = subprocess.run(
      [sys.executable, '-c', _PROGRAM % program],
      env={'PYTHONPATH': path, 'TF_CPP_MIN_LOG_LEVEL': '2', **variables},
      capture_output=True, text=True, timeout=120, check=True)
  return json.loads(result.stdout)


def test_import_loads_no_heavy_module():
  added = _modules_that_tfplugin_adds()
  assert 'tfplugin' in added
  heavy = [name for name in added if name.split('.')[0] in _HEAVY]
  assert not heavy


def test_import_loads_few_modules():
  added = [name for name in _modules_that_tfplugin_adds()
           if name.split('.')[0] == 'tfplugin']
  assert 1 < len(added) <= _MOST_MODULES


@pytest.mark.sampled(3)
@pytest.mark.parametrize('program', ('', _EVERY_CORE_PACKAGE, _TRAINING),
                         ids=('import', 'packages', 'training'))
def test_the_core_loads_no_tool(program):
  added = _modules_that_tfplugin_adds(program)
  assert not [name for name in added if name.startswith(_TOOLS)]
  assert not program or 'tfplugin.estimator.cluster_training' in added


def test_training_loads_the_tool_for_faults_where_there_are_some():
  added = _modules_that_tfplugin_adds(
      _TRAINING, TFPLUGIN_FAULTS='slow chief:0 by 0.1 s at step 9')
  assert 'tfplugin.faults.fault_hook' in added


def test_the_root_logger_is_the_users():
  # With a handler of its own each line of TensorFlow would come twice.
  _modules_that_tfplugin_adds(
      _TRAINING + '\nimport logging\nassert not logging.getLogger().handlers')


def _names_for_type_checkers() -> dict[str, str]:
  """Returns the modules of the names that only a type checker imports."""
  source = pathlib.Path(tfplugin.__file__).read_text('utf-8')
  block, = (node for node in ast.parse(source).body if isinstance(node, ast.If)
            and ast.unparse(node.test) == 'typing.TYPE_CHECKING')
  return {name.name: line.module for line in block.body for name in line.names}


def test_a_type_checker_reads_the_names_that_are_loaded_on_first_use():
  assert _names_for_type_checkers() == {
      **tfplugin._MODULES, **dict.fromkeys(tfplugin._PACKAGES, 'tfplugin')}


def test_names_that_are_not_loaded_yet_are_listed_and_imported():
  added = _modules_that_tfplugin_adds('''
names = {name for name in dir(tfplugin) if not name.startswith('__')}
assert names >= {'TowerOptimizer', 'hooks', 'contrib', 'report', 'testing'}
from tfplugin import *
assert TowerOptimizer is tfplugin.optimizers.TowerOptimizer
for name in names:
  getattr(tfplugin, name)
''')
  assert {'tfplugin.optimizers.cross_shard', 'tfplugin.hooks'} < set(added)


@pytest.mark.parametrize('name', sorted(tfplugin._MODULES))
def test_a_name_is_pickled_as_that_of_its_module(name):
  value = getattr(tfplugin, name)
  assert value.__module__ == tfplugin._MODULES[name]
  assert pickle.loads(pickle.dumps(value)) is value


def test_a_wrong_name_is_refused():
  with pytest.raises(AttributeError, match="has no attribute 'Tower'"):
    _ = tfplugin.Tower
  with pytest.raises(ImportError, match="cannot import name 'Tower'"):
    from tfplugin import Tower  # noqa: F401
