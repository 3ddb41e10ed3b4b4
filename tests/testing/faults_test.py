# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the faults that ship for tests."""

from tfplugin.events import process
from tfplugin.testing import faults


def test_faults_are_parsed_and_handed_on():
  fault, = faults.parse('raise worker:0 at step 3')
  assert isinstance(fault, faults.Fault)
  variables = faults.variables(str(fault))
  assert variables[process.FAULTS_VARIABLE] == 'raise worker:0 at step 3'
  assert issubclass(faults.InjectedError, RuntimeError)
