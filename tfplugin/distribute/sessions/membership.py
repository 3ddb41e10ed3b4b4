# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Workers that may join a run: keys of `TF_CONFIG`, number, sessions.

There are two keys, beside `cluster` and `task`:

  max_workers: In every task of a run that workers may join: how many may train
    at the same time, besides the chief.
  joins: True in a worker that joins. Its cluster has the parameter servers, the
    chief and itself. The other tasks' clusters do not name it.

The number of workers that train now is in a table of the first parameter
server. A table, unlike a variable, needs no initialisation and is in no
checkpoint, and its value changes without a new graph. The chief alone changes
it, in a session of its own.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import cluster_config
from tfplugin.distribute import cluster_task
from tfplugin.distribute import placement
from tfplugin.events import clock
from tfplugin.events import event_log

tf1 = tf.compat.v1

MAX_WORKERS = 'max_workers'
JOINS = 'joins'
# In the description of a run: environment variables of its events.
VARIABLES = 'variables'
# The server of the number, its table and the key.
_SERVER = '/job:ps/task:0'
_TABLE = 'tfplugin_num_workers'
_KEY = 'present'
# The job of the server of a worker that joins.
_BOOT = 'boot'


class Membership(NamedTuple):
  """The values in `TF_CONFIG` about workers that join.

  Attributes:
    max_workers: None: the workers are those of the cluster.
    joins: Whether this process is a worker that joins.
  """

  max_workers: int | None = None
  joins: bool = False

  @property
  def is_open(self) -> bool:
    """True if workers may join the run."""
    return self.max_workers is not None


def read() -> Membership:
  """Returns the values in the `TF_CONFIG` of this process.

  Raises ValueError if a value has the wrong type, or is too small.
  """
  keys = cluster_config.other_keys()
  max_workers, joins = keys.get(MAX_WORKERS), keys.get(JOINS, False)
  if max_workers is not None and (
      isinstance(max_workers, bool) or not isinstance(max_workers, int) or
      max_workers < 1):
    raise ValueError(
        f'`{MAX_WORKERS}` in `TF_CONFIG` must be an integer of at least 1. '
        f'Received: {max_workers!r}. Leave it out for a fixed cluster.')
  if not isinstance(joins, bool):
    raise ValueError(f'`{JOINS}` in `TF_CONFIG` must be true or false. '
                     f'Received: {joins!r}. Leave it out for a fixed cluster.')
  return Membership(max_workers, joins)


def description(cluster_spec: tf.train.ClusterSpec) -> str:
  """Returns the text from which a worker that joins learns of the run.

  Its events have the session of the run, and the clock if it is on this host.
  """
  variables = clock.variables()
  log = event_log.current()
  if log is not None:
    variables[event_log.SESSION_VARIABLE] = str(log.session)
  return json.dumps({'cluster': cluster_spec.as_dict(),
                     MAX_WORKERS: read().max_workers, VARIABLES: variables})


def check(task: cluster_task.ClusterTask) -> None:
  """Raises ValueError if the cluster of `task` cannot have workers that join.

  `task` is of the environment: the RunConfig of an evaluator has no cluster. A
  worker that joins must never be the chief, which initialises the variables.
  """
  seen = read()
  if not (seen.is_open or seen.joins):
    return
  if not task.num_ps:
    raise ValueError(
        'Workers can join only a cluster with parameter servers. Received: a '
        f'cluster without a `ps`, and `{MAX_WORKERS}` or `{JOINS}` in '
        '`TF_CONFIG`. Without them every step needs every worker, and another '
        'number of workers restarts the whole group: start it again with the '
        'new number.')
  if seen.joins and (task.job != 'worker' or task.is_chief):
    raise ValueError(
        'A task that joins must be a worker, and `cluster` in its `TF_CONFIG` '
        f'must name the chief. Received: {task.name} in '
        f'{task.cluster_spec.as_dict()}. Start it with '
        '`tfplugin-launch --join=ADDRESS`, which sets both.')


def refuse(what: str) -> None:
  """Raises ValueError if workers may join: synchronous forms are fixed.

  `what` is the form, for the message.
  """
  seen = read()
  if seen.is_open or seen.joins:
    raise ValueError(
        f'No worker can join or leave {what}, a synchronous form: another '
        'number of workers restarts the whole group. Received: a `TF_CONFIG` '
        f'with `{MAX_WORKERS if seen.is_open else JOINS}`. Start the run with '
        'a fixed number, e.g. --workers=3.')


def read_present(otherwise: int) -> tf.Tensor:
  """Returns how many workers train now, the chief included: an int64 scalar.

  It is `otherwise` before the first number is written. Each run reads it anew.
  """
  with placement.device_override(_SERVER):
    return Table(_TABLE).find(tf.constant(_KEY), otherwise)


def write_present(number: tf.Tensor) -> tf.Operation:
  """Returns the op that writes that number, on the current device."""
  return Table(_TABLE).insert(tf.constant(_KEY), number)


class Table:
  """A table from names to numbers, on the current device."""

  def __init__(self, shared_name: str):
    """Adds it to the current graph."""
    self._table = tf.raw_ops.MutableHashTableV2(
        key_dtype=tf.string, value_dtype=tf.int64, shared_name=shared_name)

  def contents(self) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns all names, and their numbers."""
    return tuple(tf.raw_ops.LookupTableExportV2(
        table_handle=self._table, Tkeys=tf.string, Tvalues=tf.int64))

  def find(self, names: tf.Tensor, otherwise: int = 0) -> tf.Tensor:
    """Returns the numbers of names, `otherwise` for unknown ones."""
    return tf.raw_ops.LookupTableFindV2(
        table_handle=self._table, keys=names,
        default_value=tf.constant(otherwise, tf.int64))

  def insert(self, names: tf.Tensor, numbers: tf.Tensor) -> tf.Operation:
    """Returns the op that sets the numbers of names."""
    return tf.raw_ops.LookupTableInsertV2(
        table_handle=self._table, keys=names, values=numbers)


def session_config(task: cluster_task.ClusterTask,
                   config: tf1.ConfigProto | None = None) -> tf1.ConfigProto:
  """Returns `config` with the cluster of a worker that joins.

  In any other task it is a copy of `config`. None stands for the default.
  """
  result = tf1.ConfigProto()
  if config is not None:
    result.CopyFrom(config)
  if read().joins:
    spec = task.cluster_spec
    result.cluster_def.CopyFrom(tf.train.ClusterSpec({
        'ps': {index: spec.task_address('ps', index)
               for index in spec.task_indices('ps')},
        task.job: {task.index: spec.task_address(task.job, task.index)},
    }).as_cluster_def())
    # Otherwise the session would have variables of its own.
    result.experimental.share_session_state_in_clusterspec_propagation = True
  return result


@contextlib.contextmanager
def joining(task: cluster_task.ClusterTask,
            estimator: tf.estimator.Estimator) -> Iterator[None]:
  """Makes an Estimator train in a worker that joins; else it changes nothing.

  No other task's cluster names this worker, and a TensorFlow server's cluster
  never changes. Two things let it train nevertheless:

  * Its server starts in a cluster of its own, with the only job `boot`. A
    server with the worker's own name could not take a session of another
    cluster.
  * Its sessions bring their cluster along: the parameter servers and itself.
    Each parameter server then opens connections for that session alone. The
    sessions share the variables of the other sessions.

  The sessions do not see other workers, and other workers do not see it. Its
  end breaks no other session.
  """
  if not read().joins:
    yield
    return
  _tf_internals.start_at_once(estimator)
  address = task.cluster_spec.task_address(task.job, task.index)

  def boot(arguments: dict[str, Any]) -> dict[str, Any]:
    return {**arguments, 'server_or_cluster_def': {_BOOT: [address]},
            'job_name': _BOOT, 'task_index': 0}

  with _tf_internals.servers_and_sessions_through(
      boot, lambda config: session_config(task, config)):
    yield
