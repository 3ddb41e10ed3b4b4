# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Logical CPUs on one physical CPU, for tests of several devices."""

from __future__ import annotations

import tensorflow as tf

tf1 = tf.compat.v1


def make_logical_cpus(count: int) -> list[str]:
  """Splits the CPU into `count` logical devices.

  TensorFlow fixes its devices when it first uses one: call this before any op,
  tensor or session is made.

  Args:
    count: The number of devices, at least 1.

  Returns:
    The names of the first `count` devices: `['/device:CPU:0', ...]`.

  Raises:
    ValueError: `count` is less than 1.
    RuntimeError: TensorFlow has fixed fewer devices already.

  Example:
    >>> from tfplugin.testing import devices
    >>> devices.make_logical_cpus(2)
    ['/device:CPU:0', '/device:CPU:1']
  """
  if count < 1:
    raise ValueError(f'`count` must be at least 1. Received: {count!r}')
  cpu = tf.config.list_physical_devices('CPU')[0]
  configured = len(
      tf.config.get_logical_device_configuration(cpu) or [None])
  if configured < count:
    try:
      tf.config.set_logical_device_configuration(
          cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    except RuntimeError as error:
      raise RuntimeError(
          f'`make_logical_cpus({count})` was called too late: TensorFlow has '
          f'been running on {configured} logical CPU(s) already. Call it '
          'before the first op, tensor or session, e.g. in `pytest_configure` '
          'of conftest.py.') from error
  return [f'/device:CPU:{index}' for index in range(count)]


def session_config(count: int) -> tf1.ConfigProto:
  """Returns the config for sessions, which replaces Estimator's own.

  Args:
    count: The number of logical CPUs that the session sees.

  Returns:
    A config with `count` CPUs and soft placement, for `Session` or `RunConfig`.
  """
  return tf1.ConfigProto(
      device_count={'CPU': count}, allow_soft_placement=True)
