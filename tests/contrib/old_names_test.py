# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every name of six modules of tf.contrib, against TensorFlow 1.15 and 2.15.

The names and their parameters were recorded from TensorFlow 1.15.5. The table
of what each is today is written into docs/contrib_names.md.
"""
# BUILD data: //:docs
# BUILD deps: //tfplugin:everything

from __future__ import annotations

import functools
import importlib
import inspect
import json
import operator
import os
import pathlib
import re
import subprocess
import sys

import pytest
import tensorflow as tf

import tfplugin
from tfplugin import contrib
from tfplugin.contrib import old_names

_ROOT = pathlib.Path(__file__).absolute().parents[2]
_DOCUMENT = _ROOT / 'docs' / 'contrib_names.md'
_BEGIN = '<!-- Written by tests/contrib/old_names_test.py: -->\n'
_RECORDED = json.loads((_ROOT / 'testdata/contrib_names.json').read_text())
_MODULES = {name: importlib.import_module(f'tfplugin.contrib.{name}')
            for name in _RECORDED}
_ALL = [(module, name) for module in _MODULES
        for name in _RECORDED[module]]
# What TensorFlow 2.15 is the last to have.
_LAST = {('data', 'CheckpointInputPipelineHook')}
_PATH = re.compile(r'`(tf(?:\.\w+)+)`')


def _at(path):
  return functools.reduce(getattr, path.split('.')[1:], tf)


def test_one_import_line_replaces_the_old_one():
  # The names as programs of TensorFlow 1.15 spell them.
  assert issubclass(contrib.opt.ElasticAverageOptimizer,
                    contrib.opt.VariableClippingOptimizer.__mro__[1])
  assert contrib.tpu.CrossShardOptimizer is tfplugin.CrossShardOptimizer
  assert contrib.estimator.replicate_model_fn is tfplugin.replicate_model_fn


def test_other_parts_of_contrib_are_refused():
  with pytest.raises(AttributeError, match=(
      r'no .contrib\.layers.\. It holds contrib\.data, contrib\.distribute, '
      r'.*TensorFlow 1\.15')):
    contrib.layers  # noqa: B018 (the access raises)


def test_hasattr_and_dir_work():
  assert not hasattr(contrib, 'seq2seq')
  assert 'opt' in dir(contrib)
  assert hasattr(contrib.data, 'scan')
  assert 'scan' in dir(contrib.data)


def test_names_are_listed_as_users_write_them():
  names = old_names.OldNames('contrib.a', moved={'C': 'tf.C', 'B': 'tf.B'})
  with pytest.raises(AttributeError, match=(
      r'^tfplugin has no `contrib\.a\.D`\. It holds contrib\.a\.B, '
      r'contrib\.a\.C\.$')):
    names.get('D')


def test_the_package_holds_the_six_modules():
  assert set(contrib.__all__) == {*_RECORDED, 'install'}


@pytest.mark.parametrize('module', _MODULES)
def test_every_name_of_1_15_has_one_place(module):
  old = _MODULES[module].OLD
  places = [*(ours.__name__ for ours in old.ours), *old.moved, *old.gone]
  assert sorted(places) == sorted(_RECORDED[module])
  assert set(old.notes) <= set(old.moved)
  assert old.module == f'contrib.{module}'


def _parameters(value):
  if not callable(value):
    return []
  names = list(inspect.signature(
      value.__init__ if inspect.isclass(value) else value).parameters)
  return names[1:] if inspect.isclass(value) else names


@pytest.mark.parametrize('module, name', [
    (module, name) for module, name in _ALL
    if name in _MODULES[module].OLD.held])
def test_what_is_held_takes_the_old_arguments(module, name):
  old = _MODULES[module].OLD
  if (module, name) in _LAST and not tf.__version__.startswith('2.15.'):
    with pytest.raises(AttributeError, match='no longer has. ended with'):
      getattr(_MODULES[module], name)
    return
  value = getattr(_MODULES[module], name)
  if name in old.moved:
    assert value is _at(old.moved[name]) or value == _at(old.moved[name])
  before = _RECORDED[module][name] or []
  if name not in old.notes:
    assert _parameters(value)[:len(before)] == before


@pytest.mark.parametrize('module, name', [
    (module, name) for module, name in _ALL
    if name in _MODULES[module].OLD.gone])
def test_what_is_gone_says_what_there_is_instead(module, name):
  instead = _MODULES[module].OLD.gone[name]
  with pytest.raises(AttributeError) as raised:
    getattr(_MODULES[module], name)
  assert str(raised.value) == (f'`contrib.{module}.{name}` ended with '
                               f'TensorFlow 1.15. Instead: {instead}.')
  for path in _PATH.findall(instead):
    assert _at(path)


def test_import_of_a_name_that_is_gone_is_an_import_error():
  with pytest.raises(ImportError, match='AdamWOptimizer'):
    from tfplugin.contrib.opt import AdamWOptimizer  # noqa: F401 (raises)


def test_importing_the_modules_asks_tensorflow_for_nothing():
  program = ('import sys, tensorflow as tf\n'
             'before = set(sys.modules)\n'
             'import tfplugin.contrib\n'
             'new = set(sys.modules) - before\n'
             'print([m for m in new if m.split(".")[0] in ("keras", '
             '"tensorflow_estimator")])')
  result = subprocess.run(
      [sys.executable, '-c', program], capture_output=True, text=True,
      timeout=120, check=True,
      env={'PYTHONPATH': os.pathsep.join(filter(None, [str(_ROOT), *sys.path])),
           'TF_CPP_MIN_LOG_LEVEL': '2'})
  assert result.stdout.strip() == '[]'


def _row(old, name):
  if name in old.moved:
    return f'`{old.moved[name]}`', old.notes.get(name, '')
  if name in old.gone:
    return '', f'instead: {old.gone[name]}'
  ours, = (ours for ours in old.ours if ours.__name__ == name)
  place = 'tfplugin' if hasattr(tfplugin, name) else ours.__module__
  return f'`{place}.{ours.__name__}`', 'of tfplugin'


def render():
  """The tables, from the data of the modules."""
  tables = []
  for module, names in _RECORDED.items():
    rows = [(f'`contrib.{module}.`', 'is now', 'note'), ('---',) * 3]
    rows += [(f'`{name}`', *_row(_MODULES[module].OLD, name)) for name in names]
    tables.append(f'\n## contrib.{module}\n\n' + ''.join(
        f'| {" | ".join(row)} |\n'.replace('|  |', '| |').replace('|  |', '| |')
        for row in rows))
  return ''.join(tables)


def _written(text):
  head, mark, _ = text.partition(_BEGIN)
  return head + mark + render()


def test_document_holds_the_tables():
  text = _DOCUMENT.read_text()
  assert _BEGIN in text
  assert text == _written(text), 'run `python -m tests.contrib.old_names_test`'


if __name__ == '__main__':
  _DOCUMENT.write_text(_written(_DOCUMENT.read_text()))


@pytest.mark.parametrize('path, name, value', [
    ('estimator.python.estimator.replicate_model_fn', 'replicate_model_fn',
     tfplugin.replicate_model_fn),
    ('opt.python.training.elastic_average_optimizer', 'GLOBAL_VARIABLE_NAME',
     'global_center_variable'),
    ('tpu.python.tpu.tpu_optimizer', 'CrossShardOptimizer',
     tfplugin.CrossShardOptimizer)])
def test_the_files_of_1_15_are_attributes(path, name, value):
  assert operator.attrgetter(f'{path}.{name}')(contrib) == value


def test_another_file_is_refused_with_the_place_of_the_names():
  with pytest.raises(AttributeError, match=(
      'no `contrib.estimator.python.estimator.extenders`.*'
      '`contrib.estimator`')):
    _ = contrib.estimator.python.estimator.extenders
