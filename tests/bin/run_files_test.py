# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the paths of a run's files."""

import pathlib

import pytest

from tfplugin.bin import run_files
from tfplugin.distribute import cluster_config


def test_every_role_has_a_file_of_its_own():
  path = run_files.status_path('runs/a', cluster_config.Task('worker', 1))
  assert path == pathlib.Path('runs/a/status/worker-1.jsonl')
  assert path.parent == run_files.status_dir('runs/a')


def test_evaluation_is_where_an_estimator_puts_it():
  assert run_files.eval_dir('runs/a') == pathlib.Path('runs/a/eval')


def test_a_model_dir_is_of_one_run_at_a_time(tmp_path):
  with run_files.reserved(tmp_path / 'run'):
    old = run_files.status_path(tmp_path / 'run',
                                cluster_config.Task('worker', 1))
    old.write_text('{}')
    with pytest.raises(RuntimeError, match='by one run at a time'):
      with run_files.reserved(tmp_path / 'run'):
        pass
    assert old.exists()
  with run_files.reserved(tmp_path / 'run'):
    assert not old.exists()
