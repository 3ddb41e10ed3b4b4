# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures and set-up that every test shares."""

import gc
import os

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
# Bit-for-bit comparisons need one order of summation.
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '0')

import numpy as np
import pytest
import tensorflow as tf
from absl import flags

from tfplugin.testing import behaviors

_NUM_LOGICAL_CPUS = 4
# Collections of garbage took a fifth of the tests' time: they begin after 700
# new objects by default, and one graph has many more.
_OBJECTS_PER_COLLECTION = 50_000


def pytest_configure(config):
  del config
  # Code under test may read absl flags; unparsed flags raise.
  flags.FLAGS(['pytest'])
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * _NUM_LOGICAL_CPUS)
  # Estimator chooses Keras for the process; a test may use that first.
  assert tf.estimator.Estimator
  gc.freeze()  # Modules stay; they need not be looked through again.
  gc.set_threshold(_OBJECTS_PER_COLLECTION)


@pytest.fixture(autouse=True)
def seeds():
  """Every test starts from the same random state."""
  np.random.seed(0)
  tf.random.set_seed(0)


@pytest.fixture(params=behaviors.BEHAVIORS)
def behavior(request):
  """Runs the test under v1 and under v2 behaviour; its value is the name."""
  with behaviors.behavior(request.param):
    yield request.param
