# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What docs/estimator.md says of other libraries is what was found.

The libraries are not here: `make living` installs and runs them.
"""
# BUILD data: //:sources

from __future__ import annotations

import ast
import pathlib

import pytest

from tests.living import libraries
from tests.living import table

_FOLDER = pathlib.Path(__file__).absolute().parent
_NAMES = [library.name for library in libraries.LIBRARIES]


def _errors(result):
  yield result.get('error')
  for found in result.get('estimators', {}).values():
    yield found.get('error')


def test_the_document_has_the_table():
  text = table.DOCUMENT.read_text(encoding='utf-8')
  assert text == table.written(text, table.read()), 'run `make living`'


def test_each_library_was_tried_with_and_without_estimator_in_tensorflow():
  for version in ('TensorFlow 2.15.', 'TensorFlow 2.21.'):
    found = [set(results) for environment, results in table.read().items()
             if environment.startswith(version)]
    assert max(found, key=len) == set(_NAMES)


def test_of_each_error_it_is_known_whose_fault_it_is():
  errors = [(library, error) for results in table.read().values()
            for library, result in results.items()
            for error in _errors(result) if error]
  assert not [error for error in errors if not libraries.fault_of(*error)]


def test_no_fault_is_kept_that_was_not_met():
  recorded = table.RESULTS.read_text(encoding='utf-8')
  met = [libraries.fault_of(library, error)
         for results in table.read().values()
         for library, result in results.items()
         for error in _errors(result) if error]
  assert recorded
  assert set(libraries.FAULTS) == set(met)


@pytest.mark.parametrize('library', libraries.LIBRARIES, ids=_NAMES)
def test_a_program_gets_no_help_but_one_import(library):
  name = library.program.rpartition('.')[2]
  tree = ast.parse((_FOLDER / f'{name}.py').read_text(encoding='utf-8'))
  imports = [alias.name for node in tree.body if isinstance(node, ast.Import)
             for alias in node.names]
  # Before TensorFlow, and no module of tfplugin beside it.
  assert imports[0] == 'tfplugin'
  assert not [other for other in imports if other.startswith('tfplugin.')]
  assert 'TF_USE_LEGACY_KERAS' not in ast.dump(tree)
