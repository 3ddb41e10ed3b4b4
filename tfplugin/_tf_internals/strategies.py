# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The classes, contexts and values of distribution strategies."""

from __future__ import annotations

import copy
import functools
import weakref
from collections.abc import Sequence
from typing import Callable

import tensorflow as tf

# What AutoGraph makes of a function that a strategy is given.
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.autograph.impl import api

# Values of all replicas as one.
from tensorflow.python.distribute import distribute_utils

# What a strategy makes of an input_fn; see `with_empty_batches`.
from tensorflow.python.distribute import input_lib

# Checks the numbers of tasks; see `take_numbered_tasks`.
from tensorflow.python.distribute import multi_worker_util

# The values and variables of several devices.
from tensorflow.python.distribute import values

# The public strategies cannot be given an extended class.
from tensorflow.python.distribute.collective_all_reduce_strategy import (
  CollectiveAllReduceExtended as CollectiveAllReduceExtended,
)
from tensorflow.python.distribute.mirrored_strategy import (
  MirroredExtended as MirroredExtended,
)

# The public strategies cannot be given an extended class, and no public class
# implements between-graph parameter servers.
from tensorflow.python.distribute.parameter_server_strategy import (
  ParameterServerStrategyExtended as ParameterServerStrategyExtended,
)

# The variable of a strategy that keeps one copy for all replicas.
from tensorflow.python.distribute.ps_values import (
  AggregatingVariable as AggregatingVariable,
)

tf1 = tf.compat.v1

# A variable with a component per device; optimizers know how to update it.
MirroredVariable = values.MirroredVariable
# A variable with a component per device, reduced when it is read as a whole.
SyncOnReadVariable = values.SyncOnReadVariable
# Makes one structure of the arguments that each replica passes to `merge_call`.
regroup = distribute_utils.regroup
# The reverse: the part of a structure that belongs to one replica.
select_replica = distribute_utils.select_replica


def strategy_with_mixins(strategy, strategy_mixin: type, extended_mixin: type):
  """Returns a strategy like `strategy` whose methods pass two mixins first.

  A strategy's behaviour is in the class of its private `_extended`; no public
  API takes a substitute for it. The new class keeps the name of the old one:
  Estimator recognises some strategies by it.

  Args:
    strategy: Any strategy; it is not changed.
    strategy_mixin: Goes in front of its class.
    extended_mixin: Goes in front of the class of its `extended`.
  """
  def renew(instance, mixin):
    cls = type(instance)
    new = object.__new__(type(cls.__name__, (mixin, cls), {}))
    new.__dict__.update(instance.__dict__)
    return new

  result = renew(strategy, strategy_mixin)
  result._extended = renew(strategy.extended, extended_mixin)
  result._extended._container_strategy_weakref = weakref.ref(result)
  return result


def with_empty_batches(iterator):
  """Lets replicas for which an iterator has no batch get one without rows.

  By default all of them end where one does, some of them after their work. No
  public argument tells an iterator of an input_fn. Shapes that are static have
  no empty batch; there it ends as before.

  Args:
    iterator: Of `make_input_fn_iterator`.
  """
  if not all(input_lib._is_statically_shaped(worker._element_spec)
             for worker in iterator._iterators):
    iterator._enable_get_next_as_optional = True
  return iterator


def copy_of_replica_context(context: tf.distribute.ReplicaContext,
                            ) -> tf.distribute.ReplicaContext:
  """Returns a replica context of the same class and replica.

  The public constructors of its subclasses differ, and a context refers to
  itself in a private field; in a plain copy it would be the old one.

  Args:
    context: The current replica context.
  """
  copied = copy.copy(context)
  copied._thread_context = type(context._thread_context)(copied)
  return copied


def is_variable_assignment(fn: Callable) -> bool:
  """Whether `fn` is an assignment, and no update by an optimizer.

  A batch norm's moving average, loading weights, or the next global step, is
  one. Both come through `extended.update`, and differ only in the module of
  the function.

  Args:
    fn: The function that `extended.update` was given.
  """
  module = getattr(fn, '__module__', None) or ''
  return module.startswith(('tensorflow.python.distribute',
                            'tensorflow.python.ops',
                            'tensorflow.python.training.moving_averages'))


def is_moving_average(fn: Callable) -> bool:
  """Whether `fn` is an update of a moving average, which may count updates.

  It differs from others in its module alone.

  Args:
    fn: The function that `extended.update` was given.
  """
  module = getattr(fn, '__module__', None) or ''
  return module.startswith('tensorflow.python.training.moving_averages')


def is_disagreement(error: RuntimeError) -> bool:
  """Whether replicas differ in how often they called `merge_call`.

  The error has no class of its own.

  Args:
    error: An error of a call for each replica.
  """
  return 'merge_call' in str(error) and 'different number' in str(error)


def index_in_cluster(extended: tf.distribute.StrategyExtended) -> int:
  """Returns the number of this process among the workers, 0 if it is alone.

  A strategy of several workers keeps it privately.

  Args:
    extended: The `extended` of a strategy.
  """
  return getattr(extended, '_id_in_cluster', 0)


def python_function_of(fn):
  """The Python function inside a `tf.function`; `fn` itself if it is none.

  A strategy builds a `tf.function` apart from the ops that come after it.
  """
  return getattr(fn, 'python_function', fn)


def function_around(function, call: Callable) -> Callable:
  """Returns a `tf.function` around a call for all replicas.

  Args:
    function: A `tf.function` that is to run in each replica.
    call: Takes a function of a replica, its args and its kwargs. The function
      is what `function` is made of, for AutoGraph to convert as there.
  """
  call = api.do_not_convert(call)
  python_function = function.python_function

  def around(*args, **kwargs):
    converted = api.tf_convert(
        python_function, ag_ctx.control_status_ctx())
    return call(converted, args, kwargs)

  return function._clone(python_function=around)


def converted_as_here(fn: Callable) -> Callable:
  """Returns `fn`, with AutoGraph inside as if it were called here.

  What is around it may be left alone by AutoGraph. No public API tells or sets
  what is converted.

  Args:
    fn: Any function.
  """
  status = ag_ctx.control_status_ctx()

  @functools.wraps(fn)
  def call(*args, **kwargs):
    with status:
      return fn(*args, **kwargs)
  return call


def is_distributed_variable(value: object) -> bool:
  """Whether `value` is a variable of a strategy; its class is private.

  Args:
    value: A destination of a reduction.
  """
  return distribute_utils.is_distributed_variable(value)


def is_mirrored(value: object) -> bool:
  """Whether `value` is the same in all replicas; its class is private.

  Args:
    value: What is to be reduced.
  """
  return distribute_utils.is_mirrored(value)


def per_replica(parts: Sequence[object]) -> tf.distribute.DistributedValues:
  """Makes one value of those of all replicas, even where they are one object.

  Only values that differ are wrapped by `regroup`; the class is private.

  Args:
    parts: The value of each replica.
  """
  return values.PerReplica(parts)


def index_of_copy(variable: tf.Variable) -> int:
  """Returns the number of the copy that the current replica writes to.

  Args:
    variable: A variable of a strategy with a copy for each replica.
  """
  copy_here = variable._get_on_device_or_primary()
  return next(index for index, value in enumerate(variable.values)
              if value is copy_here)


def make_fetchable(value: object) -> None:
  """Lets a session fetch a value of several devices: the first one's.

  It is fetched when the values of all devices are there. A session looks for
  the tensor to fetch under a private name.

  Args:
    value: The results of a function on all devices; others than tensors and
      operations of a graph are left alone.
  """
  if not isinstance(value, values.PerReplica) or not all(
      isinstance(v, (tf.Tensor, tf.Operation)) for v in value.values):
    return
  first = value.values[0]
  with tf1.control_dependencies(value.values):
    element = tf.identity(first) if tf.is_tensor(first) else tf.no_op()
  value._as_graph_element = lambda: element


def take_numbered_tasks() -> None:
  """Lets strategies take tasks that have numbers, as `worker: {3: address}`.

  A private function checks a task's number against how many there are.
  """

  def last_of_task(cluster_spec, task_type):
    if task_type not in cluster_spec.jobs:
      return 0
    return max(cluster_spec.task_indices(task_type)) + 1

  multi_worker_util.task_count = last_of_task
