# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mark on a parameter server: the run whose state the servers hold.

Initialised variables alone do not say that. They may hold the state of another
model_dir, or of a start that was interrupted before `init_fn` had ended.

The mark is a number in a table of one parameter server. A table, unlike a
variable, needs no initialisation and is in no checkpoint. It is lost together
with the server's variables. One server is enough: the mark is written when the
variables of all servers are set, and a variable that is lost later is
uninitialised.
"""

from __future__ import annotations

import posixpath
import uuid
from collections.abc import Sequence

import tensorflow as tf

from tfplugin.checkpoints import lost_variables
from tfplugin.distribute import placement
from tfplugin.distribute.sessions import membership

tf1 = tf.compat.v1

FILE_NAME = 'run.id'
_TABLE = 'tfplugin_prepared_run'
_KEY = 'run'
# While the chief restores, or initialises without an `init_fn`; of no run.
UNFINISHED = 2**63 - 1
# Without a model_dir, runs have one number.
_NO_DIRECTORY = 1


class RunMark:
  """The mark, seen from the chief or a worker.

  Attributes:
    number: An int64 scalar: the number of the run; negative before the end of
      the chief's `init_fn`; UNFINISHED; or 0 if the server has no mark.
  """

  def __init__(self, variables: Sequence[tf.Variable],
               after: Sequence[tf.Tensor] = ()):
    """Adds the ops to the current graph; `number` is read after `after`.

    `variables` are those of the parameter servers, at least one.
    """
    server = tf.DeviceSpec.from_string(_device_of_mark(variables))
    with tf1.control_dependencies(None), tf1.name_scope('run_mark'), (
        placement.device_override(server.replace(
            device_type='CPU', device_index=0).to_string())):
      table = membership.Table(_TABLE)
      self._written = tf1.placeholder(tf.int64, [])
      self._write = table.insert(tf.constant(_KEY), self._written)
      with tf1.control_dependencies(after):
        self.number = table.find(tf.constant(_KEY))

  def write(self, session: tf1.Session, number: int) -> None:
    """Writes the mark."""
    session.run(self._write, {self._written: number})


def _device_of_mark(variables: Sequence[tf.Variable]) -> str:
  """Returns the device of the mark, the same in every task.

  Hooks of one task may make variables on a server without others: the server of
  the global step has the mark. Without a step it is the first server, in
  whichever order variables are made.
  """
  devices = {v.op.name: v.device for v in variables}
  step = tf1.train.get_global_step()
  name = '' if step is None else step.op.name
  return devices.get(name, min(devices.values()))


def of_graph(after: Sequence[tf.Tensor]) -> RunMark | None:
  """Returns the mark for a worker; None without variables on a server."""
  of_servers, _ = lost_variables.split(tf1.global_variables())
  return RunMark(of_servers, after) if of_servers else None


def number_of_run(model_dir: str | None) -> int:
  """Returns the positive number in a file of `model_dir`; first makes the file.

  The directory may be known by several paths, and a path may have another
  directory later. So the path does not name the run.
  """
  if not model_dir:
    return _NO_DIRECTORY
  path = posixpath.join(model_dir, FILE_NAME)
  if tf.io.gfile.exists(path):
    with tf.io.gfile.GFile(path) as file:
      text = file.read().strip()
    if text.isdecimal():
      return int(text)
  number = (uuid.uuid4().int >> 66) + _NO_DIRECTORY + 1
  tf.io.gfile.makedirs(model_dir)
  with tf.io.gfile.GFile(path, 'w') as file:
    file.write(f'{number}\n')
  return number
