# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Placement of a graph's ops on devices, and variables of one worker."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import per_graph

tf1 = tf.compat.v1


@contextlib.contextmanager
def device_override(device: str) -> Iterator[None]:
  """Puts ops on `device` alone, regardless of outer device scopes and setters.

  `device` is a full or partial name; empty means no constraint. Inside
  `replica_device_setter` a device scope alone would be merged with the
  parameter server's device.

  Example:
    >>> with tf.Graph().as_default(), tf.compat.v1.device('/job:ps'):
    ...   with device_override('/job:worker'):
    ...     print(tf.constant(1).device)
    /job:worker
  """
  with tf1.device(None), tf1.device(device):
    yield


@contextlib.contextmanager
def outer_devices(devices: Sequence) -> Iterator[None]:
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


@functools.cache
def task_of(device: str) -> tuple[str | None, int | None]:
  """Returns the job and the number of the task that `device` names."""
  spec = tf.DeviceSpec.from_string(device)
  return spec.job, spec.task


def is_remote(source: str, destination: str) -> bool:
  """Returns whether two devices belong to different tasks."""
  return task_of(source) != task_of(destination)


def are_in_tasks(variables: Sequence[tf.Variable]) -> bool:
  """Returns whether some of `variables` are placed in a task of a cluster."""
  return any(task_of(_tf_internals.own_variable(variable).device or '')[0]
             for variable in variables)


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


def worker_variable(
    make_value: Callable[[], Any], name: str, device: str,
    is_reference: bool = False, is_listed: bool | None = True,
    variable_class: type = _tf_internals.ResourceVariable) -> tf.Variable:
  """Makes a variable of one worker, neither trained nor saved nor shared.

  It belongs to the graph around functions and branches. The creators of
  strategies and scopes do not affect it. `make_value` returns its value at each
  start of a session. `name` is its full name, without outer scopes. `device`
  holds regardless of outer scopes and setters; empty means the session's own.

  `is_reference` is for a variable that is assigned the value of a reference
  variable. A resource variable would share its buffer. `is_listed` puts it
  among the local variables. With False it starts beside them; with None its
  maker starts it.
  """
  make = (functools.partial(tf1.Variable, use_resource=False) if is_reference
          else variable_class)
  with tf.init_scope(), tf1.name_scope(None), device_override(device):
    value = make_value()
    variable = make(
        initial_value=(value if is_listed else
                       tf.zeros(value.shape, value.dtype)),
        trainable=False,
        collections=[tf1.GraphKeys.LOCAL_VARIABLES] if is_listed else [],
        name=name)
    if not is_listed:
      # TensorFlow copies the ops of an `initial_value`: conditions break.
      _tf_internals.initialize_with(variable, value)
    if is_listed is False:
      per_graph.current().unlisted.append(variable)
      # These initializers run wherever local variables are initialised.
      tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS,
                            variable.initializer)
    return variable


class _Counter(_tf_internals.ResourceVariable):
  """A variable that is ready before it has a value."""

  def is_initialized(self, name: str | None = None) -> tf.Tensor:
    """Returns true, so that no session waits for the initializer."""
    return tf.ones([], tf.bool, name)

  def has_value(self) -> tf.Tensor:
    """Returns whether there is a value, as a bool scalar."""
    return super().is_initialized()


class WorkerCounter:
  """An `int64` local variable that starts at 0 and counts events of a worker.

  The variable is not in checkpoints. A counter that is not initialised counts
  as 0. So it is ready also in a session that ran only the global initialiser,
  or a `local_init_op` made before the counter.

  Variables created:
    <name>: int64, [], local; on the worker.
  """

  def __init__(self, name: str, device: str = ''):
    """Creates the variable under its full name, on the worker's `device`."""
    self.variable = worker_variable(
        lambda: tf.zeros([], tf.int64), name, device, variable_class=_Counter)

  def increment(self, where: tf.Tensor | None = None) -> tf.Operation:
    """Returns an op that adds 1, unless the bool scalar `where` is false."""
    added = 1 if where is None else tf.cast(where, tf.int64)
    return self.variable.assign(self.value() + added)

  def value(self) -> tf.Tensor:
    """Returns the count as an `int64` scalar."""
    return tf.cond(self.variable.has_value(), self.variable.read_value,
                   lambda: tf.zeros([], tf.int64))
