# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Start of a worker: from the centre, and with the others if asked to."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import branching
from tfplugin.distribute import cluster_task
from tfplugin.distribute import graph_order
from tfplugin.distribute import placement
from tfplugin.distribute import time_limit
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.sessions import membership
from tfplugin.distribute.sessions import prompt_start
from tfplugin.events import event_log

tf1 = tf.compat.v1

# Existing graphs hold this name.
LOCAL_STEP = 'local_step'
# Limit of the wait for the other workers, where a hook may set it.
DEFAULT_TIME_LIMIT_SECS = 300.0
# Existing programs use this name for the queues.
QUEUE_NAME = 'variable_init_sync_queue'
POLL_SECS = 0.1


class StartBarrier:
  """Barrier with which the tasks of a cluster start together.

  Each task has a queue on a parameter server. A task that is ready puts a
  token into its queue, and waits until no queue is empty. No task removes a
  token: all tokens together show that the tasks have started. A task that
  starts late, or restarts, finds all tokens and continues at once. A parameter
  server that restarts has lost the variables and the tokens, so all tasks start
  together again.
  """

  def __init__(self, num_tasks: int, device: str):
    """Makes the queues of `num_tasks` tasks on a parameter server's device."""
    self._device = device
    with placement.device_override(device), tf1.control_dependencies(None):
      self._queues = [
          tf.queue.FIFOQueue(
              # A token of a failed task and one of its successor fit in.
              capacity=num_tasks + 1, dtypes=[tf.bool], shapes=[[]],
              shared_name=f'{QUEUE_NAME}{index}', name=f'{QUEUE_NAME}{index}')
          for index in range(num_tasks)]

  def announce(self, task_index: int) -> tf.Operation:
    """Returns an op that marks a task as ready; repeating it is harmless."""
    queue = self._queues[task_index]

    def put():
      with tf.control_dependencies([queue.enqueue(True)]):
        return tf.constant(True)

    with placement.device_override(self._device):
      return tf.group(
          tf1.cond(tf.equal(queue.size(), 0), put, lambda: tf.constant(False)))

  def arrived(self) -> tf.Tensor:
    """Returns a bool tensor of shape [num_tasks]: whether a task is ready."""
    with placement.device_override(self._device):
      return tf.stack([queue.size() > 0 for queue in self._queues])

  def wait(self, task_index: int, time_limit_secs: float) -> tf.Operation:
    """Returns an op that announces a task and ends when all tasks are ready.

    For code without a hook; a hook runs `arrived` repeatedly, with
    `wait_until`. After `time_limit_secs` the op raises an
    `InvalidArgumentError` that names the missing tasks.
    """
    with tf1.control_dependencies([self.announce(task_index)]):
      arrived = prompt_start.poll_while(
          self.arrived, lambda a: tf.logical_not(tf.reduce_all(a)),
          time_limit_secs, who=_name(task_index),
          whom=lambda arrived: f'the start of {_missing(arrived)}',
          tasks=_tasks)
    names = tf.constant([_name(i) for i in range(len(self._queues))])
    missing = tf.boolean_mask(names, tf.logical_not(arrived))
    return tf.debugging.Assert(
        tf.reduce_all(arrived),
        [f'{_name(task_index)} waited {time_limit_secs:g} s for the start of',
         missing], summarize=len(self._queues))


def wait_until(look: Callable, task_index: int,
               time_limit_secs: float) -> None:
  """Polls `look` until all are true; a TimeoutError names missing tasks."""
  patience = time_limit.Patience(_name(task_index), time_limit_secs)
  arrived = look()
  if all(arrived):
    return
  with event_log.span('waiting', on=_tasks(arrived)):
    while not all(arrived):
      patience.check(f'the start of {_missing(arrived)}',
                     'See their logs; if they need that long, raise '
                     '`time_limit_secs`.')
      time.sleep(POLL_SECS)
      arrived = look()


def _missing(arrived) -> str:
  return ', '.join(_name(index) for index, is_there in enumerate(arrived)
                   if not is_there)


def _tasks(arrived) -> list[str]:
  """Returns the names of the missing tasks, for the events."""
  known = dict(enumerate(cluster_task.from_environment().training_tasks))
  return [known.get(index, _name(index))
          for index, is_there in enumerate(arrived) if not is_there]


def _name(task_index: int) -> str:
  return f'the worker with task_index {task_index}'


def check_start(task_index: int, num_worker: int,
                time_limit_secs: float) -> None:
  """Raises ValueError unless `task_index` is in [0, num_worker)."""
  elastic_settings.check('task_index', task_index)
  if not 0 <= task_index < num_worker:
    raise ValueError(
        f'`task_index` must be in [0, `num_worker`), here [0, {num_worker}). '
        f'Received: {task_index!r}. Count the chief as one of the workers.')
  time_limit.check('time_limit_secs', time_limit_secs)


def barrier_of(settings: elastic_settings.ElasticSettings, num_workers: int,
               server: str) -> StartBarrier | None:
  """Returns the barrier of a synchronous start, or None.

  `server` is the device of the first centre, the same in all workers' graphs.
  """
  if not settings.synchronous:
    return None
  membership.refuse('elastic averaging with synchronous=True')
  return StartBarrier(settings.num_worker or num_workers, server)


def create_local_step(
    device: str, settings: elastic_settings.ElasticSettings | None = None,
    task: cluster_task.ClusterTask | None = None, server: str = '',
) -> tf.Variable:
  """Makes the step counter; with `settings` it waits for the other workers."""
  start = functools.partial(tf.zeros, [], tf.int64)
  if settings is not None and settings.synchronous:
    start = functools.partial(_start_together, settings, task, server)
  return placement.worker_variable(start, LOCAL_STEP, device)


def _start_together(settings, task, server) -> tf.Tensor:
  """Returns the first number of steps, once all workers have started."""
  barrier = barrier_of(settings, task.num_workers, server)
  with tf1.control_dependencies(
      [barrier.wait(task.training_index, time_limit.start_limit_secs())]):
    return tf.zeros([], tf.int64)


def start_from_center(pair: elastic_pairs.Pair) -> None:
  """Makes a new copy's initializer assign the centre's value, if any.

  So a worker starts from the centre also without the hook, and without an
  optimizer. Where the centre is initialised in the same run, both get the same
  initial value. The copy's `initial_value` stays as it is.
  """
  _tf_internals.redirect_input(
      pair.initializer, 1, value_or_initial(pair.center))


def follow_warm_starts(pairs: Sequence[elastic_pairs.Pair]) -> None:
  """Sets centres to a warm start's values, and starts all state from centres.

  Call it before ops that initialise, and before optimizers make state.
  """
  with tf.init_scope(), tf1.name_scope(None), tf1.name_scope(
      'start_from_centers'):
    for pair in pairs:
      if pair.local.initializer is not pair.initializer:
        _tf_internals.initialize_from(pair.center, pair.local.initializer)
        pair.start_from(value_or_initial(pair.center))
      elif not pair.starts_from_center:
        pair.start_from(pair.initializer.inputs[1])


def value_or_initial(center: tf.Variable) -> tf.Tensor:
  """Returns a centre's value, or its initial one before initialisation."""
  initial = center.initial_value  # Raises an error in eager mode.
  with tf.init_scope(), placement.device_override(center.device):
    return branching.cond(
        tf1.is_variable_initialized(center), center.read_value,
        lambda: tf.identity(initial), [center])


def create_state(next_creator: Callable, pairs: Sequence[elastic_pairs.Pair],
                 **kwargs: Any) -> tf.Variable:
  """Makes optimizer state, which may start from the value of a copy.

  A copy that starts from its centre has an initial value with a condition.
  TensorFlow copies the ops of an initial value, which breaks conditions.
  """
  value = kwargs.get('initial_value')
  if not (isinstance(value, tf.Tensor) and value.shape.is_fully_defined()):
    return next_creator(**kwargs)
  starts = {pair.first_value.op for pair in pairs if pair.starts_from_center}
  if starts.isdisjoint(graph_order.upstream([value.op], of_values=True)):
    return next_creator(**kwargs)
  variable = next_creator(**dict(
      kwargs, initial_value=tf.zeros(value.shape, value.dtype)))
  with tf.init_scope():
    _tf_internals.initialize_with(variable, value)
  return variable


def init_fn_for_centers(own: Callable | None,
                        pairs: Sequence[elastic_pairs.Pair]) -> Callable:
  """Returns an `init_fn` that copies the values set by `own` to the centres.

  It runs before the copies are initialised: `own`, which may be None, has set
  the initialised ones.
  """
  with tf1.control_dependencies(None), tf1.name_scope('elastic_init_fn'):
    is_set = tf.stack([tf1.is_variable_initialized(pair.local)
                       for pair in pairs])
    to_center = [
        tf.group(pair.center.assign(pair.local.read_value(), read_value=False))
        for pair in pairs]

  def init_fn(scaffold, session):
    if own is not None:
      own(scaffold, session)
    done = session.run(is_set)
    session.run([op for op, was_set in zip(to_center, done) if was_set])

  return init_fn


def scaffold_for_centers(own: tf1.train.Scaffold,
                         pairs: Sequence[elastic_pairs.Pair],
                         **changed: Any) -> tf1.train.Scaffold:
  """Returns `own`, with `changed` fields, which now also sets centres."""
  if own.init_op is not None:
    _start_in_one_run(own.init_op, pairs)
  if own.init_fn is not None or own.init_op is not None:
    changed['init_fn'] = init_fn_for_centers(
        _tf_internals.user_init_fn(own), pairs)
  return _tf_internals.changed_scaffold(own, **changed)


def local_init_op(scaffold: tf1.train.Scaffold | None,
                  variables: Sequence[tf.Variable],
                  ) -> dict[str, tf.Operation]:
  """Returns arguments for a copy of `scaffold` that starts `variables` too.

  Without its own op a scaffold initialises every local variable. The op of a
  user covers only the model's, not those local variables that a decorator
  added.
  """
  if scaffold is None or scaffold.local_init_op is None:
    return {}
  return {'local_init_op': tf.group(
      scaffold.local_init_op, tf1.variables_initializer(variables))}


def _start_in_one_run(init_op, pairs) -> None:
  """Makes `init_op` initialise copies in the same run as their centres."""
  run = graph_order.upstream(graph_order.operations_of([init_op]))
  for pair in pairs:
    for variable in (*pair.copies, pair.local_center):
      if variable is not None and variable.initializer in run:
        _tf_internals.redirect_input(
            variable.initializer, 1, value_or_initial(pair.center))


def refuse_centers(pairs: Iterable[elastic_pairs.Pair],
                   settings: elastic_settings.ElasticSettings,
                   losses: Sequence[Any], train_ops: Sequence[Any]) -> None:
  """Raises a ValueError if a loss, or a write in a step, uses a centre.

  Call it before the exchange at the step's end. With 'elastic_first' the
  train_op contains exchanges, so only the loss is checked. An optimizer of
  several devices reads the centre of an untrained variable, such as its rate.
  """
  values = graph_order.upstream(losses, of_values=True)
  writes = [] if settings.update_order == 'elastic_first' else [
      op for op in graph_order.upstream(train_ops)
      if _tf_internals.method_of_write(op)]
  step = values | graph_order.upstream(writes, of_values=True)
  for pair in pairs:
    is_shared = len(pair.copies) > 1 and not pair.trainable
    for op in pair.center.op.outputs[0].consumers():
      if op in (values if is_shared else step):
        raise ValueError(
            'With elastic averaging the loss and the train_op of a model_fn '
            'must use worker copies, which the worker trains, and no centre. '
            f'Received: {op.name} ({op.type}), which uses the centre of '
            f'{pair.center.name!r}. tf.compat.v1.global_variables() returns '
            'the centres, as does the collection GLOBAL_VARIABLES. Use '
            'tf.compat.v1.trainable_variables(), or the variables that '
            'get_variable returned.')
