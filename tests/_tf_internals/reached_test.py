# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The data on private TensorFlow is true, complete and not stale."""
# BUILD data: //:sources
# BUILD deps: //tfplugin:everything

from __future__ import annotations

import ast
import collections
import importlib
import inspect
import pathlib
import pkgutil
import re
import runpy
import sys
import textwrap

import tfplugin
from tfplugin import _tf_internals
from tfplugin import compat
from tfplugin._tf_internals import keras
from tfplugin._tf_internals import reached
from tfplugin._tf_internals import saving
from tfplugin.distribute.clipping import variable_clipping_strategy

_INTERNALS = pathlib.Path(reached.__file__).parent
_PRIVATE = re.compile(r'_(?!abc_)[A-Za-z]\w*')
_COMPAT = pathlib.Path(compat.__file__).parent
_MODULES = [name for name in reached.NAMES
            if inspect.ismodule(pkgutil.resolve_name(name))]
# Mixins that no class of a file puts before a class of TensorFlow.
_MIXED = (
    (variable_clipping_strategy.PackedClippingExtended,
     _tf_internals.ParameterServerStrategyExtended),
    (variable_clipping_strategy.MirroredClippingExtended,
     _tf_internals.MirroredExtended),
    (saving._SliceableVariable, _tf_internals.MirroredVariable),
)


def _trees(folder=_INTERNALS):
  return [ast.parse(path.read_text(encoding='utf-8'))
          for path in sorted(folder.rglob('*.py'))
          if path.name != 'reached.py']


def _own_classes():
  """Every class of this project, and the mixins as they are used."""
  # Programs define flags, and cannot be imported side by side.
  modules = [importlib.import_module(module.name) for module in
             pkgutil.walk_packages(tfplugin.__path__, 'tfplugin.')
             if not module.name.startswith('tfplugin.bin.')]
  classes = {c for module in modules for c in vars(module).values()
             if inspect.isclass(c) and c.__module__ == module.__name__}
  return [*classes, *(type('Mixed', bases, {}) for bases in _MIXED)]


def _owner(cls, after, name):
  """The class of TensorFlow behind `after` that has the attribute, or None."""
  bases = [base for base in cls.__mro__[cls.__mro__.index(after) + 1:]
           if base.__module__.startswith('tensorflow')]
  defining = [base for base in bases if name in vars(base)]
  setting = [base for base in bases if any(
      name in f.__code__.co_names for f in reached.functions(base))]
  owner = next(iter(defining + setting), None)
  return owner and f'{owner.__module__}.{owner.__qualname__}'


def _is_ours(cls):
  return cls.__module__.startswith(('tfplugin', __name__))


def _parts():
  """Yields each class with each of those of ours that it is made of."""
  for cls in _own_classes():
    for part in filter(_is_ours, cls.__mro__):
      yield cls, part


def _used(cls):
  """The private attributes of itself that the code of a class names."""
  tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
  return {node.attr for node in ast.walk(tree)
          if isinstance(node, ast.Attribute) and _PRIVATE.match(node.attr)
          and ast.unparse(node.value) in ('self', 'cls')}


def _inherited():
  """Yields (class of TensorFlow, name) of what our classes use of theirs."""
  for cls, part in _parts():
    own = {name for base in filter(_is_ours, cls.__mro__)
           for name in vars(base)}
    if part.__qualname__ != 'Mixed':
      for name in _used(part) - own:
        owner = _owner(cls, part, name)
        if owner:
          yield owner, name


def _listed(owners):
  return {(owner, name) for owner in owners
          for name in reached.NAMES[owner].split()}


def test_the_installed_tensorflow_has_everything():
  assert not reached.moved()


def test_the_data_is_read_without_the_other_files():
  assert runpy.run_path(reached.__file__)['moved']() == []


def test_what_tensorflow_has_moved_is_told(monkeypatch):
  optimizer = 'tensorflow.python.training.optimizer.Optimizer'
  monkeypatch.setattr(reached, 'NAMES', {
      'tensorflow.python.no_module': 'name',
      'tensorflow.python.framework.ops': 'NoSuchClass',
      f'{optimizer}.NoSuchClass': 'name',
      optimizer: '_create_slots _no_such_slot'})
  monkeypatch.setattr(reached, 'NAMES_OF_COMPAT', {})
  monkeypatch.setattr(reached, 'OVERRIDES', {
      optimizer: {'_create_slots': 'self var_list', '_prepare': 'self now'},
      'tensorflow.python.no_class': {'_method': 'self'}})
  assert reached.moved() == [
      'tensorflow.python.no_module is gone',
      'tensorflow.python.framework.ops.NoSuchClass is gone',
      f'{optimizer}.NoSuchClass is gone',
      f'{optimizer}._no_such_slot is gone',
      f'{optimizer}._prepare takes (self), not (self now)',
      'tensorflow.python.no_class is gone']


def test_the_overrides_are_those_of_our_classes():
  overrides = collections.defaultdict(dict)
  for cls, part in _parts():
    for name in filter(_PRIVATE.match, vars(part)):
      owner = _owner(cls, part, name)
      if owner:
        overrides[owner][name] = reached.parameters(
            pkgutil.resolve_name(owner), name)
  assert dict(overrides) == reached.OVERRIDES


def test_every_call_of_an_overridden_method_is_of_a_known_one():
  known = {name for methods in reached.OVERRIDES.values() for name in methods}
  # Between our own classes.
  known |= {'_are_totals', '_step_is_built', '_create_exchange',
            '_create_state', '_decide', '_end_step', '_intercepting',
            '_is_of_rule', '_reduce_over_all', '_refuse_eager',
            '_sum_over_all'}
  root = pathlib.Path(tfplugin.__file__).parent
  calls = {name for path in root.rglob('*.py') for name in re.findall(
      r'\bsuper\(\)\.(_[a-z]\w*)', path.read_text(encoding='utf-8'))}
  assert '_update' in calls
  assert not calls - known


def _replaced(tree):
  """The names `owner.member` that `replaced(owner, member=...)` replaces."""
  return [(ast.unparse(node.args[0]), keyword.arg) for node in ast.walk(tree)
          if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
              ('replaced', 'replaced_in_turn'))
          for keyword in node.keywords if keyword.arg]


def _imports(folder=_INTERNALS):
  imported = set()
  for tree in _trees(folder):
    modules = {}
    for node in ast.walk(tree):
      if isinstance(node, ast.ImportFrom) and node.module.startswith(
          'tensorflow.'):
        for name in (alias.name for alias in node.names):
          if f'{node.module}.{name}' in sys.modules:
            modules[name] = f'{node.module}.{name}'
          else:
            imported.add((node.module, name))
    imported |= {
        (modules[node.value.id], node.attr) for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        and node.value.id in modules}
    imported |= {(modules[owner], name) for owner, name in _replaced(tree)
                 if owner in modules}
  return imported


def test_the_imports_are_listed():
  # Looked up by a session, used by tests, and loaded without an import.
  others = {('tensorflow.python.framework.ops', '_as_graph_element'),
            ('tensorflow_estimator.python.estimator.training',
             '_ContinuousEvalListener'),
            ('tensorflow_estimator.python.estimator.training',
             '_NewCheckpointListenerForEvaluate'),
            ('tensorflow_estimator.python.estimator.training',
             '_TrainingExecutor'),
            ('tensorflow_estimator.python.estimator.training', 'time'),
            ('tensorflow.python.tpu.tpu_function', 'tpu_shard_context'),
            (f'{keras.keras_2().__name__}.src.backend',
             'get_default_graph_uid_map'),
            (f'{keras.keras_2().__name__}.src.utils.losses_utils',
             '_safe_mean')}
  assert _listed(_MODULES) == _imports() | others


def test_what_stands_in_for_modules_lists_what_it_is_made_of():
  listed = {(owner, name) for owner, names in reached.NAMES_OF_COMPAT.items()
            for name in names.split()}
  # What it gives to TensorFlow itself.
  assert _imports(_COMPAT) - {(
      'tensorflow.python.util.tf_export', 'ESTIMATOR_API_NAME')} <= listed
  used = {node.attr for tree in _trees(_COMPAT) for node in ast.walk(tree)
          if isinstance(node, ast.Attribute) and _PRIVATE.fullmatch(node.attr)
          and ast.unparse(node.value) not in ('self', 'sys')}
  # RunConfig sets the one by a list of names; the other is the coordinator's.
  assert used - {name for _, name in listed} == {
      '_experimental_distribute', '_distribute_coordinator_mode'}


def test_the_attributes_are_listed():
  inherited = set(_inherited())
  listed = _listed(set(reached.NAMES) - set(_MODULES))
  assert inherited <= listed
  of_modules = {name for _, name in _listed(_MODULES)}
  assert {name for _, name in listed} == (
      _attributes() - of_modules | {name for _, name in inherited})


def _attributes():
  """The private attributes that the code names, of objects of TensorFlow."""
  # All but the first are attributes of nodes, which a graph has in its file.
  names, own = set(), {
      '_copies', '_class', '_gradient_op_type', '_output_shapes', '_XlaCompile'}
  for tree in _trees():
    names.update(name for _, name in _replaced(tree))
    for node in ast.walk(tree):
      if isinstance(node, ast.FunctionDef):
        own.add(node.name)
      elif isinstance(node, ast.Attribute):
        names.add(node.attr)
      elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        names.add(node.value)
  # Overridden here, and called there.
  own.remove('_set_save_slice_info')
  return {name for name in names - own if _PRIVATE.fullmatch(name)}
