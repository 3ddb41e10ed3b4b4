# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules that the repository keeps about its own files."""
# BUILD data: //:sources

from __future__ import annotations

import ast
import pathlib
import re

from build_defs import import_graph
from build_defs import update_build_files

_ROOT = pathlib.Path(__file__).absolute().parents[2]
_FILES = import_graph.python_files(_ROOT)
_SOURCES = [file for file in _FILES if file.startswith('tfplugin/')]
# By version, of which all have two digits behind the point.
_PINS = sorted(path.relative_to(_ROOT).as_posix()
               for path in _ROOT.glob('requirements/tensorflow-*.txt'))

_HEADER = ('# Copyright 2026 The tfplugin Authors.\n'
           '# SPDX-License-Identifier: Apache-2.0\n')
_INTERNALS = 'tfplugin/_tf_internals/'
# What stands in for private modules is made of private TensorFlow, too.
_PRIVATE = (_INTERNALS, 'tfplugin/compat/')

# Source files without a test at the mirrored path, and why. Must not grow.
_NO_TEST = {
    'tfplugin/__main__.py': 'prints; see compat/report_test.py',
    'tfplugin/version.py': 'constants; see _version_gate_test.py',
}

# Parts of something that is tested as a whole: the test that reaches them. A
# test of their own, at the mirrored path, is better.
_TESTED_BY = {
    'tfplugin/checkpoints/training_guard.py':
        'tests/hooks/checkpoint_guard_hook_test.py',
    'tfplugin/optimizers/elastic_updates.py':
        'tests/distribute/updates/on_nonfinite_test.py',
    'tfplugin/report/panel.py': 'tests/report/page_test.py',
    'tfplugin/testing/contract_models.py':
        'tests/conformance/contract_test.py',
    'tfplugin/testing/optimizer_contract.py':
        'tests/conformance/contract_test.py',
}

# Files that may edit collections of a graph, and why. Must not grow.
_EDITS_COLLECTIONS = {
    'tfplugin/distribute/elastic/values/first_values.py':
        "the chief's hook tells workers to begin, in an initialiser's place",
    'tfplugin/distribute/updates/intercepted_updates.py':
        'the store of get_variable, while an optimizer is applied to a copy',
    'tfplugin/distribute/shards/building/shard_models.py':
        'a shard must see what it made itself; all is put back afterwards',
    'tfplugin/distribute/shards/building/shard_run.py':
        'the summaries of later shards are there for the same graph in all',
}

# What a rule does not touch: variables, and the graph or context around it.
_IMPURE = re.compile(
    r'(get_)?(\w+_)?[vV]ariables?|assign(_\w+)?|scatter_(?!nd$)\w+|read_value'
    r'|control_dependencies|colocate_with|device|init_scope|\w+_collection'
    r'|get_default_graph|executing_eagerly\w*|inside_function|distribute')

# Files that ask a RunConfig, or a resolver, which task this process is; others
# ask `cluster_task`. Must not grow.
_READ_THE_TASK = {
    'tfplugin/compat/estimator_training.py',  # Tells RunConfig.
    'tfplugin/distribute/cluster_task.py',
}
_TASK_ATTRIBUTES = {'task_type', 'task_id', 'num_ps_replicas',
                    'num_worker_replicas', 'global_id_in_cluster'}


def _text(file: str) -> str:
  return (_ROOT / file).read_text(encoding='utf-8')


def test_files_are_found():
  assert 'tfplugin/__init__.py' in _SOURCES
  assert len(_FILES) > 20


def test_every_file_begins_with_the_licence_header():
  assert not [file for file in _FILES
              if not _text(file).removeprefix('#!/usr/bin/env python3\n')
              .startswith(_HEADER)]


def test_no_file_is_a_drawer_for_everything():
  drawers = {'common.py', 'helpers.py', 'misc.py', 'util.py', 'utils.py'}
  assert not [f for f in _FILES if pathlib.PurePath(f).name in drawers]


def test_every_file_has_a_docstring():
  assert not [file for file in _FILES
              if not ast.get_docstring(ast.parse(_text(file)))]


def test_private_tensorflow_is_imported_in_two_folders_only():
  pattern = re.compile(
      r'^\s*(from|import) tensorflow(_estimator)?\.python\b', re.M)
  offenders = [
      file for file in _FILES if not file.startswith(_PRIVATE)
      and not file.startswith('testdata/') and pattern.search(_text(file))]
  assert not offenders, f'{offenders}: add a function to {_INTERNALS} instead'


def test_private_tensorflow_functions_say_why():
  functions = [node for file in _SOURCES if file.startswith(_INTERNALS)
               for node in ast.parse(_text(file)).body
               if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
  assert functions
  assert not [node.name for node in functions if not ast.get_docstring(node)]


def test_collections_of_the_graph_are_not_edited():
  pattern = re.compile(r'\b(clear_collection|get_collection_ref)\(')
  edits = {file for file in _SOURCES if pattern.search(_text(file))}
  assert edits <= set(_EDITS_COLLECTIONS)
  # The one function that gives the graph of a branch a list of its own.
  reaches = [file for file in _SOURCES if 'graph._collections' in _text(file)]
  assert set(reaches) <= {f'{_INTERNALS}graphs.py'}


def test_one_module_knows_which_task_a_process_is():
  readers = {file for file in _SOURCES
             for node in ast.walk(ast.parse(_text(file)))
             if isinstance(node, ast.Attribute)
             and node.attr in _TASK_ATTRIBUTES}
  assert readers <= _READ_THE_TASK


def test_the_rules_are_functions_of_tensors():
  rules = [file for file in _SOURCES if file.startswith('tfplugin/ops/')]
  assert rules
  wrong = [(file, other) for file in rules
           for other in import_graph.needs(_ROOT, file).imported
           if not other.startswith(('tfplugin/ops/', 'tfplugin/types.py',
                                    'tfplugin/__init__.py'))]
  wrong += [(file, node.attr) for file in rules
            for node in ast.walk(ast.parse(_text(file)))
            if isinstance(node, ast.Attribute) and _IMPURE.fullmatch(node.attr)]
  assert not wrong


def _mirrored(file: str) -> str:
  return f'tests/{file[len("tfplugin/"):-len(".py")]}_test.py'


def test_every_source_file_has_its_test_at_the_same_path():
  exempt = {*_NO_TEST, *_TESTED_BY}
  assert not [
      _mirrored(file) for file in _SOURCES
      if file not in exempt and not file.endswith('__init__.py')
      and not (_ROOT / _mirrored(file)).is_file()]


def test_exemptions_from_a_test_are_not_stale():
  stale = [file for file in _NO_TEST if file not in _SOURCES
           or (_ROOT / _mirrored(file)).is_file()]
  assert not stale


def _reached(file: str) -> set:
  """Returns the files that `file` imports, directly or not."""
  seen, pending = set(), [file]
  while pending:
    new = import_graph.needs(_ROOT, pending.pop()).imported - seen
    seen |= new
    pending += new
  return seen


def test_a_part_is_reached_by_the_test_of_the_whole():
  wrong = [file for file, test in _TESTED_BY.items()
           if test not in _FILES or file not in _reached(test)]
  assert not wrong


def test_build_files_are_up_to_date():
  stale = update_build_files.stale(_ROOT)
  assert not stale, 'run `make build-files`'


def test_ports_are_chosen_in_one_place():
  choosers = [file for file in _FILES
              if re.search(r'\.bind\(\(', _text(file))]
  assert choosers == [
      'benchmarks/contrib_reference.py',  # Runs without tfplugin, too.
      'tfplugin/bin/processes/ports.py']


def test_exemption_from_lint_carries_a_reason():
  # `noqa` with codes only is a rule that was switched off for no reason.
  pattern = re.compile(r'#\s*noqa(?!: [A-Z0-9, ]+ \(.+)')
  offenders = [
      f'{file}:{number}' for file in _SOURCES
      for number, line in enumerate(_text(file).splitlines(), 1)
      if pattern.search(line)]
  assert not offenders, '# noqa: CODE (why)'


def test_nothing_of_one_machine_is_named():
  pattern = re.compile(r'[\s\'"=:(`]/(?:home|root|work|Users)/')
  files = [*_FILES, 'README.md', 'Makefile', 'setup.py', *_PINS]
  assert not [file for file in files
              if (_ROOT / file).is_file() and pattern.search(_text(file))]


def _pinned(file: str, distribution: str) -> str:
  return re.search(rf'^{distribution}==([\d.]+)$', _text(file), re.M).group(1)


def test_version_and_requirements_agree():
  bounds = re.findall(r"_TENSORFLOW = '([\d.]+)'",
                      _text('tfplugin/version.py'))
  low, high = ([int(part) for part in bound.split('.')] for bound in bounds)
  pinned = [_pinned(file, 'tensorflow(?:-cpu)?') for file in _PINS]
  assert [f'requirements/tensorflow-{version.rpartition(".")[0]}.txt'
          for version in pinned] == _PINS
  numbers = [[int(part) for part in version.split('.')] for version in pinned]
  assert [number[:2] for number in numbers] == [
      [2, minor] for minor in range(low[1], high[1])]
  assert all(low <= number < high for number in numbers)
  assert "_WITH_ESTIMATOR = '>=2.15,<2.16'" in _text('setup.py')
  assert f"_WITHOUT_ESTIMATOR = '>=2.16.2,<2.{high[1]}'" in _text('setup.py')


def test_keras_is_of_the_tensorflow():
  for file in _PINS[1:]:
    assert (_pinned(file, 'tf-keras').rpartition('.')[0] ==
            _pinned(file, 'tensorflow').rpartition('.')[0])


def test_the_extras_bring_what_is_imported():
  setup = _text('setup.py')
  required, train, report, test = (
      set(re.findall(r"'([a-z-]+)[>=<{]", re.search(
          rf'{name}=? ?= ?\[(.*?)\]', setup, re.S).group(1)))
      for name in ('install_requires', '_TRAIN', '_REPORT', '_TEST'))
  imported = {top: set().union(*(
      import_graph.needs(_ROOT, file).distributions for file in _FILES
      if file.startswith(f'{top}/'))) for top in ('tfplugin', 'tests')}
  # tensorflow comes by an extra of its own.
  assert imported['tfplugin'] - required - {'tensorflow'} == train | report
  assert (imported['tests'] - required - {'tensorflow'} <=
          train | report | test)


def test_bazel_reads_the_pinned_setuptools():
  pins = {_pinned(file, 'setuptools') for file in _PINS}
  assert len(pins) == 1
  pin = f'setuptools=={pins.pop()}'
  assert f'requires = ["{pin}"]' in _text('pyproject.toml')
  assert f"'{pin}'" in _text('setup.py')
