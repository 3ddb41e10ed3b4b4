# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The program says what became of each variable."""

from __future__ import annotations

import pathlib

import pytest
from absl import app
from absl.testing import flagsaver

from testdata.contrib_checkpoints import programs
from tfplugin.bin import migrate_checkpoint

_RECORDED = pathlib.Path(programs.__file__).parent


def _run(*paths):
  migrate_checkpoint.main(['program', *map(str, paths)])


def test_each_variable_has_a_line(tmp_path, capsys):
  _run(_RECORDED / 'drop_stale', tmp_path / 'new')
  lines = capsys.readouterr().out.splitlines()
  assert lines[0] == ('renamed   cond/beta1_power to beta1_power: as without '
                      'the wrapper')
  assert 'kept      global_step' in lines
  assert len(lines) == 10
  with flagsaver.flagsaver(to='contrib', wrapper='drop_stale'):
    _run(tmp_path / 'new', tmp_path / 'back')
  assert ('renamed   beta1_power to cond/beta1_power: in the wrapper\'s scope'
          in capsys.readouterr().out.splitlines())


def test_what_is_left_out_or_added_is_said(tmp_path, capsys):
  _run(_RECORDED / 'towers_keras', tmp_path / 'new')
  assert ('left out  tower_1/dense_1/bias: towers share the variables of the '
          'first one') in capsys.readouterr().out.splitlines()
  with flagsaver.flagsaver(to='contrib', wrapper='drop_stale'):
    _run(tmp_path / 'new', tmp_path / 'stale')
  assert 'added     stale_counter: nothing was dropped' in (
      capsys.readouterr().out.splitlines())


@pytest.mark.parametrize('paths', [(), ('a',), ('a', 'b', 'c')])
def test_two_paths_are_needed(paths):
  with pytest.raises(app.UsageError, match='two paths, OLD and NEW'):
    _run(*paths)
