# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What strategies keep private: their classes, contexts and values."""

from __future__ import annotations

import copy
import weakref
from typing import Callable

import tensorflow as tf

# Values of all replicas as one.
from tensorflow.python.distribute import distribute_utils

# Runs a function once per replica, each in its thread, up to each `merge_call`.
from tensorflow.python.distribute import mirrored_run

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

# A variable with a component per device, which optimizers know how to update.
MirroredVariable = values.MirroredVariable
# One with a component per device that are reduced where it is read as a whole.
SyncOnReadVariable = values.SyncOnReadVariable
call_for_each_replica = mirrored_run.call_for_each_replica
# A replica context that pauses the replica's thread in `merge_call`; the public
# API gives no way to run something around the pause.
MirroredReplicaContext = mirrored_run._MirroredReplicaContext
# Makes what every replica passes to `merge_call` one structure.
regroup = distribute_utils.regroup
# The reverse: what of a structure belongs to one replica.
select_replica = distribute_utils.select_replica


def strategy_with_mixins(strategy, strategy_mixin: type, extended_mixin: type):
  """Returns a strategy like `strategy` whose methods pass two mixins first.

  A strategy's behaviour is in the class of its private `_extended`, for which
  no public API takes a substitute. The new class keeps the name of the old one,
  by which Estimator recognises some strategies.

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


def copy_of_replica_context(context: tf.distribute.ReplicaContext,
                            ) -> tf.distribute.ReplicaContext:
  """Returns a replica context of the same class and replica.

  The public constructors of its subclasses differ, and a context refers to
  itself in a private field, which a plain copy would leave behind.

  Args:
    context: The current replica context.
  """
  copied = copy.copy(context)
  copied._thread_context = type(context._thread_context)(copied)
  return copied


def is_variable_assignment(fn: Callable) -> bool:
  """Whether `fn` is what a distributed variable's own assignment runs.

  Such as a batch norm's moving average, or loading weights: no update of an
  optimizer. Both come through `extended.update`, with nothing that tells but
  where the function is from.

  Args:
    fn: What `extended.update` was called with.
  """
  module = getattr(fn, '__module__', None) or ''
  return module.startswith('tensorflow.python.distribute')


def is_disagreement(error: RuntimeError) -> bool:
  """Whether replicas differ in how often they called `merge_call`.

  The error has no class of its own.

  Args:
    error: What `call_for_each_replica` raised.
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

  A strategy would otherwise build it apart from what comes after it.
  """
  return getattr(fn, 'python_function', fn)


def is_distributed_variable(value: object) -> bool:
  """Whether `value` is a variable of a strategy; its class is private.

  Args:
    value: A destination of a reduction.
  """
  return distribute_utils.is_distributed_variable(value)


def make_fetchable(value: object) -> None:
  """Lets a session fetch a value of several devices: the first one's.

  It is fetched when the values of all devices are there. A session looks for
  the tensor to fetch under a private name.

  Args:
    value: What a function returned on every device; others than tensors and
      operations of a graph are left alone.
  """
  if not isinstance(value, values.PerReplica) or not all(
      isinstance(v, (tf.Tensor, tf.Operation)) for v in value.values):
    return
  first = value.values[0]
  with tf1.control_dependencies(value.values):
    element = tf.identity(first) if tf.is_tensor(first) else tf.no_op()
  value._as_graph_element = lambda: element
