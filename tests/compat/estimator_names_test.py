# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every spelling by which programs import Estimator, on every TensorFlow.

Each is tried in a process of its own, which has imported tfplugin, or
TensorFlow, and nothing else. The table is written into docs/estimator.md:

  python -m tests.compat.estimator_names_test
"""
# BUILD data: //:docs
# BUILD deps: //tfplugin:everything

from __future__ import annotations

import pathlib
import pickle
import pkgutil
import types

import pytest
import tensorflow as tf

from tests.compat import fresh_processes
from tfplugin.compat import estimator_names

_DOCUMENT = pathlib.Path(__file__).absolute().parents[2] / 'docs/estimator.md'
_BEGIN = '<!-- Written by tests/compat/estimator_names_test.py: -->\n'
_END = '\n<!-- Until here. -->'

_E = 'tensorflow_estimator.python.estimator'
_HAS_ESTIMATOR = tf.__version__.startswith('2.15.')
_KERAS = 'keras' if _HAS_ESTIMATOR else 'tf_keras'
_TF = 'import tensorflow as tf'
_TF1 = 'import tensorflow.compat.v1 as tf'
_PRIVATE = 'from tensorflow.python.estimator'
_INSTALL = 'import tfplugin; tfplugin.contrib.install()'

# What a program imports, what it uses, and where that is.
_FORMS = (
    (_TF, 'tf.estimator.Estimator', f'{_E}.estimator:EstimatorV2'),
    (_TF, 'tf.compat.v1.estimator.Estimator', f'{_E}.estimator:Estimator'),
    (_TF, 'tf.compat.v2.estimator.DNNClassifier',
     f'{_E}.canned.dnn:DNNClassifierV2'),
    (_TF1, 'tf.estimator.Estimator', f'{_E}.estimator:Estimator'),
    (_TF1, 'tf.estimator.tpu.TPUEstimator',
     f'{_E}.tpu.tpu_estimator:TPUEstimator'),
    (_TF1, 'tf.compat.v2.estimator.Estimator', f'{_E}.estimator:EstimatorV2'),
    ('import tensorflow.compat.v2 as tf', 'tf.estimator.RunConfig',
     f'{_E}.run_config:RunConfig'),
    ('import tensorflow.compat.v2 as tf',
     'tf.compat.v1.estimator.tpu.TPUEstimator',
     f'{_E}.tpu.tpu_estimator:TPUEstimator'),
    ('from tensorflow import estimator', 'estimator.LinearClassifier',
     f'{_E}.canned.linear:LinearClassifierV2'),
    ('import tensorflow.estimator as estimator', 'estimator.EstimatorSpec',
     f'{_E}.model_fn:EstimatorSpec'),
    ('from tensorflow.estimator import Estimator', 'Estimator',
     f'{_E}.estimator:EstimatorV2'),
    ('from tensorflow.estimator import *', 'Estimator',
     f'{_E}.estimator:EstimatorV2'),
    ('from tensorflow.estimator.export import PredictOutput', 'PredictOutput',
     f'{_E}.export.export_output:PredictOutput'),
    ('from tensorflow.compat.v1 import estimator', 'estimator.Estimator',
     f'{_E}.estimator:Estimator'),
    ('from tensorflow.compat.v1.estimator import tpu', 'tpu.TPUEstimatorSpec',
     f'{_E}.tpu.tpu_estimator:TPUEstimatorSpec'),
    ('import tensorflow.compat.v1.estimator.tpu as tpu', 'tpu.RunConfig',
     f'{_E}.tpu.tpu_config:RunConfig'),
    ('import tensorflow_estimator as tfe', 'tfe.estimator.Estimator',
     f'{_E}.estimator:Estimator'),
    (f'from {_E} import estimator', 'estimator.EstimatorV2',
     f'{_E}.estimator:EstimatorV2'),
    (f'from {_E}.canned import optimizers', 'optimizers.get_optimizer_instance',
     f'{_E}.canned.optimizers:get_optimizer_instance'),
    (f'from {_E}.tpu import tpu_estimator', 'tpu_estimator.TPUEstimator',
     f'{_E}.tpu.tpu_estimator:TPUEstimator'),
    (f'{_PRIVATE} import estimator', 'estimator.Estimator',
     f'{_E}.estimator:Estimator'),
    (f'{_PRIVATE} import estimator_lib', 'estimator_lib.Estimator',
     f'{_E}.estimator:Estimator'),
    (f'{_PRIVATE} import exporter', 'exporter.FinalExporter',
     f'{_E}.exporter:FinalExporter'),
    (f'{_PRIVATE} import model_fn', 'model_fn.EstimatorSpec',
     f'{_E}.model_fn:EstimatorSpec'),
    (f'{_PRIVATE} import run_config', 'run_config.RunConfig',
     f'{_E}.run_config:RunConfig'),
    (f'{_PRIVATE}.training import train_and_evaluate', 'train_and_evaluate',
     f'{_E}.training:train_and_evaluate'),
    (f'{_PRIVATE}.canned import head', 'head._Head',
     f'{_E}.canned.head:_Head'),
    (f'{_PRIVATE}.canned import optimizers',
     'optimizers.get_optimizer_instance',
     f'{_E}.canned.optimizers:get_optimizer_instance'),
    (f'{_PRIVATE}.canned.dnn import DNNClassifier', 'DNNClassifier',
     f'{_E}.canned.dnn:DNNClassifier'),
    (f'{_PRIVATE}.export.export_output import RegressionOutput',
     'RegressionOutput', f'{_E}.export.export_output:RegressionOutput'),
    (f'{_PRIVATE}.inputs import numpy_io', 'numpy_io.numpy_input_fn',
     f'{_E}.inputs.numpy_io:numpy_input_fn'),
    (f'{_PRIVATE}.keras import model_to_estimator', 'model_to_estimator',
     f'{_E}.keras_lib:model_to_estimator'),
    (_TF, 'tf.keras.estimator.model_to_estimator',
     f'{_KERAS}.src.estimator:model_to_estimator_v2'),
    (_TF1, 'tf.keras.estimator.model_to_estimator',
     f'{_KERAS}.src.estimator:model_to_estimator'),
    (f'{_INSTALL}; {_TF}', 'tf.contrib.estimator.replicate_model_fn',
     'tfplugin.estimator.replicate:replicate_model_fn'),
    (f'{_INSTALL}; {_TF1}', 'tf.contrib.tpu.TPUEstimator',
     f'{_E}.tpu.tpu_estimator:TPUEstimator'),
    (f'{_INSTALL}; from tensorflow.contrib import opt',
     'opt.ElasticAverageOptimizer',
     'tfplugin.optimizers.elastic_average:ElasticAverageOptimizer'),
    (f'{_INSTALL}; from tensorflow.contrib.opt.python.training import '
     'variable_clipping_optimizer as clipping',
     'clipping.VariableClippingOptimizer',
     'tfplugin.optimizers.variable_clipping:VariableClippingOptimizer'),
    (f'{_INSTALL}; from tensorflow.contrib.tpu.python.tpu import tpu_config',
     'tpu_config.RunConfig', f'{_E}.tpu.tpu_config:RunConfig'),
)

# What a process has imported before: each is the first import of a program.
_FIRST = {
    'tfplugin': 'import tfplugin',
    'tensorflow': 'import tensorflow, tensorflow.compat.v1; import tfplugin',
}
# Whatever the spelling, a pickle must hold the name that all processes know.
_USE = '''
{imported}
import pickle, pkgutil
used = {used}
assert used is pkgutil.resolve_name({real!r}), used
print(pickle.dumps(used).hex())
'''
_UNPICKLE = '''
import pickle, pkgutil
unpickled = pickle.loads(bytes.fromhex({pickled!r}))
assert unpickled is pkgutil.resolve_name({real!r})
'''


def render():
  """The table of the document."""
  rows = ['| a program says | and uses |', '| --- | --- |']
  rows += [f'| `{imported}` | `{used}` |' for imported, used, _ in _FORMS]
  return '\n'.join(rows)


def written(text):
  """The document with the table in it."""
  return (text.partition(_BEGIN)[0] + _BEGIN + '\n' + render() + '\n'
          + _END + text.partition(_END)[2])


@pytest.mark.sampled(6)
@pytest.mark.parametrize('first', _FIRST)
def test_every_spelling_finds_the_one_object(first):
  uses = fresh_processes.run(_FIRST[first], [
      _USE.format(imported=imported, used=used, real=real)
      for imported, used, real in _FORMS])
  assert not {form[:2]: use.errors
              for form, use in zip(_FORMS, uses) if use.errors}
  # A process that has tfplugin only reads the pickles.
  pickles = {form[2]: use.printed.strip() for form, use in zip(_FORMS, uses)}
  results = fresh_processes.run(_FIRST['tfplugin'], [
      _UNPICKLE.format(pickled=pickled, real=real)
      for real, pickled in pickles.items()])
  assert not [result.errors for result in results if result.errors]


def test_a_run_config_is_pickled():
  config = tf.estimator.RunConfig(tf_random_seed=3)
  assert pickle.loads(pickle.dumps(config)).tf_random_seed == 3


def test_there_are_many_spellings_without_repeats():
  assert len({form[:2] for form in _FORMS}) == len(_FORMS) > 16


def test_the_document_has_the_table():
  text = _DOCUMENT.read_text(encoding='utf-8')
  assert text == written(text), 'python -m tests.compat.estimator_names_test'


def test_aliases_are_of_modules_that_exist():
  reals = list(estimator_names.ALIASES.values())
  if not _HAS_ESTIMATOR:
    reals += estimator_names.KERAS_ALIASES.values()
  for real in reals:
    assert pkgutil.resolve_name(real)


def test_nothing_happens_where_estimator_is():
  (result,) = fresh_processes.run('import tensorflow as tf', ['''
import sys
import tensorflow as tf; tf.estimator = None
finders, modules = list(sys.meta_path), set(sys.modules)
import tfplugin
assert tf.estimator is None
assert [type(f) for f in sys.meta_path] == [type(f) for f in finders]
'''])
  assert not result.errors


def test_without_estimator_the_error_is_that_of_python():
  (result,) = fresh_processes.run(_FIRST['tfplugin'], ['''
import sys
sys.modules['tensorflow_estimator'] = None
import tensorflow as tf
try:
  tf.estimator.Estimator
except ModuleNotFoundError as error:
  assert error.name.startswith('tensorflow_estimator'), error.name
else:
  raise AssertionError
'''])
  assert not result.errors


class _Row:

  def __init__(self, names, constants):
    self.row = names, constants


def test_a_table_without_estimator_gets_its_rows_once(monkeypatch):
  table = types.SimpleNamespace(
      TENSORFLOW_API_NAME='tensorflow', SUBPACKAGE_NAMESPACES=[],
      API_ATTRS={'tensorflow': _Row('a', 'b')},
      API_ATTRS_V1={'tensorflow': _Row('c', 'd')})
  monkeypatch.setattr(estimator_names, 'tf_export', table)
  for _ in range(2):
    estimator_names._add_api_name()
  assert table.SUBPACKAGE_NAMESPACES == ['estimator']
  assert table.API_ATTRS['estimator'].row == (
      '_estimator_api_names', '_estimator_api_constants')
  assert table.API_ATTRS_V1['estimator'].row == (
      '_estimator_api_names_v1', '_estimator_api_constants_v1')


if __name__ == '__main__':
  _DOCUMENT.write_text(written(_DOCUMENT.read_text(encoding='utf-8')))
