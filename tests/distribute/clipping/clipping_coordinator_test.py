# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clipping over the parameter servers of a ClusterCoordinator.

A coordinator connects a whole process to its cluster, so it gets its own.
"""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from tests.distribute.clipping import clipping_coordinator_program as program

_ROOT = str(pathlib.Path(program.__file__).parents[3])
_TIME_LIMIT_SECS = 120

pytestmark = pytest.mark.distributed


@pytest.fixture(scope='module')
def results():
  done = subprocess.run(
      [sys.executable, program.__file__], capture_output=True, text=True,
      env={**os.environ, 'PYTHONPATH': _ROOT}, check=False,
      timeout=_TIME_LIMIT_SECS)
  assert done.returncode == 0, done.stderr[-3000:]
  return json.loads(done.stdout.splitlines()[-1])


def clipped(values, axis):
  norms = np.linalg.norm(values, axis=axis, keepdims=True)
  return values / np.maximum(1.0, norms)


@pytest.mark.parametrize('case', program.CASES)
def test_update_on_a_worker_is_clipped_after_it(results, case):
  (dim,), (_, _, rows) = program.CASES[case][0].values(), program.CASES[case]
  table = np.array(program.TABLE)
  if rows is None:
    table = clipped(table - 1.0, dim)
  else:  # Row 0 twice. Others were not looked up, and are left alone.
    table[0] = clipped(table[:1] - 2.0, dim)[0]
  np.testing.assert_allclose(results[case]['table'], table, rtol=1e-6)
  assert results[case]['other'] == [[4.0, 4.0]]


def test_fit_clips_columns_over_the_parts_of_a_kernel(results):
  # Labels of 100 pull every column beyond its bound.
  np.testing.assert_allclose(results['fit'], [0.5, 0.5], rtol=1e-5)
