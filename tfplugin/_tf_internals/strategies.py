# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Classes, contexts and values of strategies, and TPU shards."""

from __future__ import annotations

import copy
import functools
import weakref
from typing import Callable

import tensorflow as tf

# The conversion of a function that a strategy gets, by AutoGraph.
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.autograph.impl import api

# Conversion of the values of all replicas to one value and back.
from tensorflow.python.distribute import distribute_utils

# The iterators of input_fns; see `with_empty_batches`.
from tensorflow.python.distribute import input_lib

# Checks the numbers of tasks; see `take_numbered_tasks`.
from tensorflow.python.distribute import multi_worker_util

# The values and variables of several devices.
from tensorflow.python.distribute import values

# The public strategies accept no extended class.
from tensorflow.python.distribute.collective_all_reduce_strategy import (
  CollectiveAllReduceExtended as CollectiveAllReduceExtended,
)
from tensorflow.python.distribute.mirrored_strategy import (
  MirroredExtended as MirroredExtended,
)

# The public strategies accept no extended class, and no public class implements
# between-graph parameter servers.
from tensorflow.python.distribute.parameter_server_strategy import (
  ParameterServerStrategyExtended as ParameterServerStrategyExtended,
)

# The variable of a strategy that keeps one copy for all replicas.
from tensorflow.python.distribute.ps_values import (
  AggregatingVariable as AggregatingVariable,
)

# How many TPU shards are being built; see `number_of_tpu_shards`.
from tensorflow.python.tpu import tpu_function as tpu_function

tf1 = tf.compat.v1

_id_in_cluster = multi_worker_util.id_in_cluster


class StartedVariable(AggregatingVariable):
  """A variable that several devices share, which a warm start reaches.

  A warm start replaces the initialiser of the variable that it finds.
  TensorFlow runs the initialiser of the variable inside.
  """

  @property
  def _initializer_op(self):
    return self.get()._initializer_op

  @_initializer_op.setter
  def _initializer_op(self, op):
    self.get()._initializer_op = op


# A variable with a component per device; optimizers know how to update it.
MirroredVariable = values.MirroredVariable
# A variable with a component per device, reduced when it is read as a whole.
SyncOnReadVariable = values.SyncOnReadVariable
# Merges the arguments of all replicas for `merge_call` into one structure.
regroup = distribute_utils.regroup
# The reverse: the part of a structure that belongs to one replica.
select_replica = distribute_utils.select_replica
# The values of all replicas, even if they are one object: `regroup` wraps only
# different values.
per_replica = values.PerReplica
# Whether a value is a strategy's variable; its class is private.
is_distributed_variable = distribute_utils.is_distributed_variable
# Whether a value is equal in all replicas; its class is private.
is_mirrored = distribute_utils.is_mirrored


def strategy_with_mixins(strategy, strategy_mixin: type, extended_mixin: type):
  """Returns a copy of `strategy` with a mixin in front of each of two classes.

  These are its own class and the class of its `_extended`, which has the
  behaviour. The new classes keep the old names, by which Estimator recognises
  some strategies.
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
  """Makes an iterator return an empty batch to replicas without a batch.

  By default all replicas end when one has no batch, some of them after their
  work. Static shapes allow no empty batch, and keep the default.
  """
  if not all(input_lib._is_statically_shaped(worker._element_spec)
             for worker in iterator._iterators):
    iterator._enable_get_next_as_optional = True
  return iterator


def copy_of_replica_context(context: tf.distribute.ReplicaContext,
                            ) -> tf.distribute.ReplicaContext:
  """Returns a replica context of the same class and replica.

  A plain copy would refer to the original as its own context.
  """
  copied = copy.copy(context)
  copied._thread_context = type(context._thread_context)(copied)
  return copied


def is_variable_assignment(fn: Callable) -> bool:
  """Returns whether `fn` of `extended.update` is an assignment, and no update.

  Examples are a batch norm's moving average, loading weights, and the next
  global step. An optimizer's update also comes through `extended.update`, and
  differs only in the module of the function.
  """
  module = getattr(fn, '__module__', None) or ''
  return module.startswith(('tensorflow.python.distribute',
                            'tensorflow.python.ops',
                            'tensorflow.python.training.moving_averages'))


class StepOperations:
  """Mixin before an extended class, whose `update` of a step is an operation.

  `Optimizer.apply_gradients` promises an operation, which programs return from
  a branch of `tf.cond`. With a strategy of one device TensorFlow returns the
  updated global step, and only takes the operation of a tensor.
  """

  def update(self, var, fn, args=(), kwargs=None, group=True):
    """Updates `var` as `tf.distribute.StrategyExtended.update`."""
    return step_operation(
        fn, group, super().update(var, fn, args, kwargs, group))


def step_operation(fn: Callable, group: bool, result: object) -> object:
  """Returns the result of `update`; that of a step is an operation."""
  if group and fn is tf1.assign_add and not tf.executing_eagerly():
    return getattr(result, 'op', result)
  return result


def is_write(fn: Callable) -> bool:
  """Returns whether `fn` of a merge call writes to a strategy's variable."""
  module = getattr(fn, '__module__', None)
  return module == 'tensorflow.python.distribute.values'


def is_moving_average(fn: Callable) -> bool:
  """Returns whether `fn` updates a moving average, which may count updates."""
  module = getattr(fn, '__module__', None) or ''
  return module.startswith('tensorflow.python.training.moving_averages')


def is_disagreement(error: RuntimeError) -> bool:
  """Returns whether replicas differ in how often they called `merge_call`."""
  return 'merge_call' in str(error) and 'different number' in str(error)


def is_late(error: RuntimeError) -> bool:
  """Returns whether a strategy's collectives are set up after the first op."""
  return 'at program startup' in str(error)


def has_started_server(strategy: tf.distribute.Strategy | None) -> bool:
  """Returns whether a strategy, in eager mode, has started its server."""
  return getattr(getattr(strategy, 'extended', None), '_std_server_started',
                 False)


def index_in_cluster(extended: tf.distribute.StrategyExtended) -> int:
  """Returns the number of this process among the workers; 0 if it is alone."""
  return getattr(extended, '_id_in_cluster', 0)


def python_function_of(fn):
  """Returns the Python function inside a `tf.function`, or `fn` itself."""
  return getattr(fn, 'python_function', fn)


def function_around(function, call: Callable) -> Callable:
  """Returns a `tf.function` around a call for all replicas.

  `function` is a `tf.function` for each replica. `call` takes its Python
  function, converted by AutoGraph as there, with args and kwargs.
  """
  call = api.do_not_convert(call)
  python_function = function.python_function

  def around(*args, **kwargs):
    converted = api.tf_convert(
        python_function, ag_ctx.control_status_ctx())
    return call(converted, args, kwargs)

  return function._clone(python_function=around)


def converted_as_here(fn: Callable) -> Callable:
  """Returns `fn`, called with the current AutoGraph status."""
  status = ag_ctx.control_status_ctx()

  @functools.wraps(fn)
  def with_status(*args, **kwargs):
    with status:
      return fn(*args, **kwargs)
  return with_status


def index_of_copy(variable: tf.Variable) -> int:
  """Returns the index of the copy that the current replica writes to."""
  copy_here = variable._get_on_device_or_primary()
  return next(index for index, value in enumerate(variable.values)
              if value is copy_here)


def make_fetchable(value: object) -> None:
  """Makes a value of several devices fetchable: the part of the first device.

  The fetch waits for the values of all devices. A session reads the tensor from
  a private attribute. Values other than tensors and operations of a graph are
  ignored.
  """
  if not isinstance(value, values.PerReplica) or not all(
      isinstance(v, (tf.Tensor, tf.Operation)) for v in value.values):
    return
  first = value.values[0]
  with tf1.control_dependencies(value.values):
    element = tf.identity(first) if tf.is_tensor(first) else tf.no_op()
  value._as_graph_element = lambda: element


def take_numbered_tasks() -> None:
  """Makes strategies accept tasks with numbers, as `worker: {3: address}`.

  The pipelines of their inputs are counted from 0, without the gaps.
  """

  def last_of_task(cluster_spec, task_type):
    if task_type not in cluster_spec.jobs:
      return 0
    return max(cluster_spec.task_indices(task_type)) + 1

  def position_in_cluster(cluster_spec, task_type, task_id):
    spec = tf.train.ClusterSpec(cluster_spec)
    if task_type == 'worker' and task_type in spec.jobs:
      # Tasks that join later may be none of the known ones.
      task_id = sum(index < task_id for index in spec.task_indices(task_type))
    return _id_in_cluster(cluster_spec, task_type, task_id)

  multi_worker_util.task_count = last_of_task
  multi_worker_util.id_in_cluster = position_in_cluster


def is_in_replica() -> bool:
  """Returns whether the current code runs in a replica."""
  return not tf.distribute.in_cross_replica_context()


def is_in_shard() -> bool:
  """Returns whether a shard with a model of its own is being built."""
  return hasattr(tf.distribute.get_replica_context(), 'tower')


def number_of_tpu_shards() -> int | None:
  """Returns the number of shards of the current TPU context, or None."""
  return tpu_function.get_tpu_context().number_of_shards
