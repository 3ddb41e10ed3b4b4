# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of telling processes of their faults."""

import pytest

from tfplugin.events import process
from tfplugin.faults import environment
from tfplugin.faults import language


def test_variables_come_back(monkeypatch):
  variables = environment.variables('kill worker:0 at step 3')
  for name, value in variables.items():
    monkeypatch.setenv(name, value)
  faults, run = environment.read()
  assert faults == language.parse('kill worker:0 at step 3')
  assert run == variables[environment.RUN_VARIABLE]
  # Another run is another one.
  assert environment.variables('kill worker:0 at step 3') != variables


def test_no_faults_are_no_variables(monkeypatch):
  assert environment.variables(' ') == {}
  monkeypatch.delenv(process.FAULTS_VARIABLE, raising=False)
  assert environment.read()[0] == ()


def test_a_bad_text_is_refused_before_anything_starts():
  with pytest.raises(ValueError, match='A fault must be like'):
    environment.variables('kill them')


@pytest.mark.parametrize('task', ['worker:2', 'ps:1', 'evaluator:0', 'chief:1'])
def test_a_task_that_the_run_does_not_have_is_refused(task):
  environment.check('', 0, 0, False)
  environment.check('kill chief:0 at step 1; kill worker:1 at step 1; '
                    'kill ps:0 at step 1', 2, 1, False)
  text = f'kill {task} at step 1'
  with pytest.raises(ValueError, match=(
      f'chief:0, worker:0, worker:1, ps:0. Received: "{text}"')):
    environment.check(text, 2, 1, False)
