# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the import graph behind the BUILD files, and of shards."""
# BUILD data: //build_defs:sources

import types

import pytest

from build_defs import import_graph
from build_defs import pytest_main

_TREE = {
    'tfplugin/__init__.py': '',
    'tfplugin/ring/__init__.py': (
        'from tfplugin.ring.bell import bell\nfrom tfplugin.ring import gong'),
    'tfplugin/ring/bell.py': 'import numpy as np',
    'tfplugin/ring/gong.py': '',
}


def _needs(root, source):
  for file, text in {**_TREE, 'tests/ring_test.py': source}.items():
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
  return import_graph.needs(root, 'tests/ring_test.py')


def test_an_import_needs_the_module(tmp_path):
  needs = _needs(tmp_path, 'from tfplugin.ring import gong')
  assert needs.imported == {'tfplugin/ring/gong.py'}


def test_an_attribute_with_the_name_of_a_module_needs_the_package(tmp_path):
  # Without the `__init__.py` the name would be the module.
  needs = _needs(tmp_path, 'from tfplugin.ring import bell')
  assert needs.imported == {'tfplugin/ring/__init__.py'}
  needs = _needs(tmp_path, 'from tfplugin.ring.bell import bell')
  assert needs.imported == {'tfplugin/ring/bell.py'}


def test_a_string_needs_what_it_names(tmp_path):
  needs = _needs(tmp_path, "run(['-m', 'tfplugin.ring.gong'])")
  assert not needs.imported
  assert needs.mentioned == {'tfplugin/ring/gong.py'}


def test_data_is_needed_by_a_name_and_by_an_import(tmp_path):
  assert _needs(tmp_path, "open('testdata/x')").testdata
  assert _needs(tmp_path, 'from testdata.goldens import recorded').testdata
  assert not _needs(tmp_path, 'from tfplugin.ring import gong').testdata


def _in_shard(index, tests):
  items = [types.SimpleNamespace(path=path, number=number)
           for number, path in enumerate(tests)]
  hook = types.SimpleNamespace(pytest_deselected=lambda items: None)
  pytest_main._Shard(index, 2).pytest_collection_modifyitems(
      types.SimpleNamespace(hook=hook), items)
  return [item.number for item in items]


@pytest.mark.parametrize(('tests', 'first', 'second'), [
    ('aabbbc', [0, 1, 5], [2, 3, 4]),
    ('aaaaa', [0, 2, 4], [1, 3]),
])
def test_a_shard_takes_whole_files_or_tests_of_the_only_one(
    tests, first, second):
  assert [_in_shard(0, tests), _in_shard(1, tests)] == [first, second]
