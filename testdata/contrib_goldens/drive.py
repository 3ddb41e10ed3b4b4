# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs one scenario; what it raises is a result too."""

from __future__ import annotations

from testdata.contrib_goldens import elastic_drive
from testdata.contrib_goldens import optimizers_drive
from testdata.contrib_goldens import towers_drive

_DRIVERS = {
    'variable_clipping': optimizers_drive.clip,
    'drop_stale': optimizers_drive.stale,
    'cross_shard': optimizers_drive.cross_shard,
    'elastic_average': elastic_drive.elastic,
    'towers': towers_drive.towers,
}

# What a scenario may raise; anything else is a mistake in the driver.
_RAISED = (AttributeError, IndexError, KeyError, TypeError, ValueError,
           RuntimeError)


def drive(tf1, contrib, scenario):
  """Returns the recorded values, or `{'error': name of the exception}`."""
  function = _DRIVERS[scenario['wrapper']]
  try:
    return function(tf1, contrib, scenario)
  except _RAISED + (tf1.errors.OpError,) as error:
    if not scenario.get('may_raise'):
      raise
    return {'error': type(error).__name__, 'message': str(error)}
