# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what a user sees when a program cannot go on, or begin."""

import importlib.util

import pytest
from absl import flags

from tfplugin.bin import failures


@pytest.mark.parametrize('error, status, shown', [
    (ValueError('`no_flag` must be'), 1, 'Error: `no_flag` must be\n'),
    (FileNotFoundError('no data'), 1, 'Error: no data\n'),
    (TimeoutError('waited'), 1, 'Error: waited\n'),
    (KeyboardInterrupt(), 130, 'Stopped on request.\n'),
])
def test_the_message_and_the_status(capsys, error, status, shown):
  with pytest.raises(SystemExit) as ended, failures.shown():
    raise error
  assert ended.value.code == status
  assert capsys.readouterr().err == shown


def test_arguments_are_named_as_users_type_them(capsys):
  flags.DEFINE_integer('rows', 1, 'A flag.')
  with pytest.raises(SystemExit), failures.shown(), failures.of_usage():
    raise ValueError('`rows` must be more than `columns`.')
  with pytest.raises(SystemExit), failures.shown():
    raise RuntimeError('`rows` is in use.')
  first, _, second = capsys.readouterr().err.splitlines()
  assert first == 'Error: --rows must be more than `columns`.'
  assert second == 'Error: --rows is in use.'
  del flags.FLAGS.rows


def test_a_defect_keeps_its_traceback():
  with pytest.raises(AttributeError), failures.shown():
    raise AttributeError('ours')


def test_nothing_is_missing_here():
  failures.check_installed()


def test_what_is_missing_is_named_with_the_command(monkeypatch):
  find = importlib.util.find_spec
  monkeypatch.setattr(importlib.util, 'find_spec',
                      lambda name: None if name == 'rich' else find(name))
  with pytest.raises(RuntimeError, match=(
      r"need rich.*python -m pip install 'tfplugin\[train\]'")):
    failures.check_installed()
