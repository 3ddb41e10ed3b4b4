# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""No string names private TensorFlow outside of `_tf_internals`."""
# BUILD data: //:sources

from __future__ import annotations

import pathlib

import pytest

from build_defs import private_names

_ROOT = pathlib.Path(__file__).absolute().parents[2]


def _found(root, source, file='tfplugin/sample.py'):
  path = root / file
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(source)
  return private_names.private_strings(root)


def test_no_string_names_private_tensorflow():
  found = private_names.private_strings(_ROOT)
  assert not found, f'{found}: add a function to tfplugin/_tf_internals/'


@pytest.mark.parametrize('line, name', [
    ("getattr(extended, '_id_in_cluster', 0)", '_id_in_cluster'),
    ("fn.__name__ == '_distributed_apply'", '_distributed_apply'),
    ("op.type == 'AssignVariableOp'", 'AssignVariableOp'),
    ("_READS = ('x', 'VarIsInitializedOp')", 'VarIsInitializedOp'),
    ("override({'IdentityN': 'Mine'})", 'IdentityN'),
    ("module.startswith('tensorflow.python.distribute')",
     'tensorflow.python.distribute'),
    ("top == 'keras'", 'keras'),
    ("'keras.src.losses' in modules", 'keras.src.losses'),
    ("getattr(fn, '__qualname__', '')", '__qualname__'),
    ("print(fn.__module__)", '__module__'),
])
def test_a_private_name_in_a_string_is_found(tmp_path, line, name):
  assert _found(tmp_path, f'import x\n{line}\n') == [
      f'tfplugin/sample.py:2: {name}']


@pytest.mark.parametrize('test', [
    "'merge_call' in str(error)", "'gone' not in error.message",
    "error.args[0] == 'gone'", "re.search('gone', str(error))",
    "str(error).startswith('gone')"])
def test_a_text_that_is_looked_for_in_an_error_is_found(tmp_path, test):
  assert _found(tmp_path, (
      f'try:\n  f()\nexcept ValueError as error:\n  if {test}:\n    raise\n')
                ) == ['tfplugin/sample.py:4: the text of `error`']


@pytest.mark.parametrize('source', [
    '"""Like `_distributed_apply` of tensorflow.python."""\n',
    'def f():\n  """keras"""\n',
    "_MARK = '_tfplugin_decorators'\n",
    "_state = contextvars.ContextVar('_state')\n",
    "hasattr(spec, '_replace')\n",
    "label = f'`{fn.__qualname__}`'\n",
    "importlib.metadata.version('tensorflow')\n",
    "kind = 'ElasticAverageOptimizer'\n",
    "try:\n  f()\nexcept ValueError as e:\n  if '`rules` must' in str(e):\n"
    "    pass\n",
    "try:\n  f()\nexcept ValueError as e:\n  print(e.message, str(e) == x)\n",
])
def test_what_is_public_or_our_own_is_left_alone(tmp_path, source):
  assert _found(tmp_path, source) == []


def test_the_folder_for_private_names_is_left_alone(tmp_path):
  source = "op.type == 'AssignVariableOp'\n"
  assert not _found(tmp_path, source, 'tfplugin/_tf_internals/op_types.py')
  assert _found(tmp_path, source, 'tfplugin/ops/op_types.py')


def test_the_program_tells_by_its_status(tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(private_names, '_ROOT', tmp_path)
  assert _found(tmp_path, "x = 'keras'\n")
  assert private_names.main() == 1
  assert capsys.readouterr().out == 'tfplugin/sample.py:1: keras\n'
  _found(tmp_path, '')
  assert private_names.main() == 0
