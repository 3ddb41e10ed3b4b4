# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Placement of the ops of a graph on devices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from collections.abc import Sequence

import tensorflow as tf

from tfplugin import _tf_internals

tf1 = tf.compat.v1


@contextlib.contextmanager
def only_on(device: str) -> Iterator[None]:
  """Puts ops on `device` alone, regardless of outer device scopes and setters.

  `device` is a full or partial name; empty means no constraint. Inside
  `replica_device_setter` a device scope alone would be merged with the
  parameter server's device.

  Example:
    >>> with tf.Graph().as_default(), tf.compat.v1.device('/job:ps'):
    ...   with only_on('/job:worker'):
    ...     print(tf.constant(1).device)
    /job:worker
  """
  with tf1.device(None), tf1.device(device):
    yield


@contextlib.contextmanager
def as_within(devices: Sequence) -> Iterator[None]:
  """Leaves a colocation, and restores the device functions around it.

  A colocation hides the device functions around it, for example the one of
  `replica_device_setter`. `devices` are the functions that
  `_tf_internals.device_functions()` returned outside the colocation.
  """
  known = _tf_internals.device_functions()
  is_aside = not all(function in known for function in devices)
  with contextlib.ExitStack() as stack:
    # Leaving the colocation hides the known functions, too.
    stack.enter_context(tf1.get_default_graph().colocate_with(
        None, ignore_existing=True))
    for function in devices if is_aside else known:
      stack.enter_context(tf1.device(function))
    yield


@contextlib.contextmanager
def conditions_explained() -> Iterator[None]:
  """Raises RuntimeError with remedies for a condition that cannot be placed.

  In control flow v2 a condition that reads a variable of a parameter server is
  placed on the worker. The variable's handle is then placed there too, although
  it is on the other job. One example is the summary of zeros of TensorFlow's
  canned linear models.
  """
  try:
    yield
  except tf.errors.InvalidArgumentError as e:
    if not _tf_internals.is_unplaced_condition(e):
      raise
    raise RuntimeError(
        'A condition in the graph must be placed with the variable that it '
        f'reads, which is on a parameter server. Received: {e.message}\n'
        'Set `allow_soft_placement=True` in the `session_config` of RunConfig, '
        'or call `tf.compat.v1.disable_control_flow_v2()` first of all.') from e
