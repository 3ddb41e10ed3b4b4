# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the check of TensorFlow's version."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tfplugin import _version_gate


def _import_tfplugin(directory) -> subprocess.CompletedProcess:
  """Imports tfplugin in a process that finds modules in `directory` first."""
  path = os.pathsep.join([str(directory), *filter(None, sys.path)])
  return subprocess.run(
      [sys.executable, '-c', 'import tfplugin'], env={'PYTHONPATH': path},
      capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize('version', ['2.15.0', '2.15.1', '2.16.0', '2.21.9'])
def test_version_in_range_passes(version):
  _version_gate.check(version)


@pytest.mark.parametrize(
    'version', ['1.15.5', '2.9.0', '2.14.1', '2.22.0', '2.22.0-rc0', '3.0', ''])
def test_version_out_of_range_is_refused_with_the_range(version):
  with pytest.raises(ImportError, match='>= 2.15.0 and < 2.22.0') as error:
    _version_gate.check(version)
  assert f'Received: TensorFlow {version}.' in str(error.value)
  assert 'pip install' in str(error.value)


def test_import_without_tensorflow_names_the_command(tmp_path):
  (tmp_path / 'tensorflow.py').write_text(
      'raise ModuleNotFoundError("none", name="tensorflow")\n')
  result = _import_tfplugin(tmp_path)
  assert result.returncode == 1
  assert 'ImportError: tfplugin needs TensorFlow' in result.stderr
  assert 'pip install "tfplugin[cpu]"' in result.stderr
  assert 'pip install "tfplugin[gpu]"' in result.stderr


def test_import_with_the_rest_of_a_removed_tensorflow_names_the_command(
    tmp_path):
  (tmp_path / 'tensorflow').mkdir()
  (tmp_path / 'tensorflow/__init__.py').write_text('')
  result = _import_tfplugin(tmp_path)
  assert result.returncode == 1
  assert 'ImportError: tfplugin needs TensorFlow' in result.stderr


def test_broken_tensorflow_is_not_taken_for_a_missing_one(tmp_path):
  (tmp_path / 'tensorflow.py').write_text('import not_a_module\n')
  result = _import_tfplugin(tmp_path)
  assert "No module named 'not_a_module'" in result.stderr
  assert 'pip install' not in result.stderr


def test_import_with_another_tensorflow_says_the_range(tmp_path):
  (tmp_path / 'tensorflow.py').write_text("__version__ = '2.22.1'\n")
  result = _import_tfplugin(tmp_path)
  assert result.returncode == 1
  assert '>= 2.15.0 and < 2.22.0' in result.stderr
  assert 'Received: TensorFlow 2.22.1' in result.stderr
