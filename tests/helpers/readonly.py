# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A directory that is read-only for some time, as in the fault `readonly`."""

import pytest

from tfplugin.faults import acts


def make(directory, secs):
  """Skips the test where root may not mount."""
  try:
    acts.make_readonly(str(directory), secs)
  except OSError as e:
    pytest.skip(str(e))
