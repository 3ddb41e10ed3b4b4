# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models of replicas in one graph, each built as if there were no other."""

from __future__ import annotations

import collections
import contextlib
import functools
import importlib
import inspect
import types
from collections.abc import Iterator
from typing import Callable

import tensorflow as tf

# The seeds of random ops; see `_seeds`.
from tensorflow.python.framework import random_seed

# The terms of regularizers; see `regularize_once`.
from tensorflow.python.ops import variable_scope

from tfplugin._tf_internals import keras as keras_lib
from tfplugin._tf_internals import replacing

tf1 = tf.compat.v1

# Difference between the seeds of two replicas: a prime.
_SEED_STEP, _LARGEST_SEED = 104729, 2 ** 31 - 1
# Attribute of a graph; see `_Regularized`.
_REGULARIZED = 'tfplugin_regularized'


@contextlib.contextmanager
def models_by_replica(own_tensors: bool = True) -> Iterator[None]:
  """Makes TensorFlow and Keras build a model in each replica, as on one device.

  By default, a random op with a seed draws the same in all replicas, and Keras
  numbers the layers of all replicas together. With `own_tensors`, a replica
  does not find the tensors of another one in collections, such as losses.
  """
  with contextlib.ExitStack() as stack:
    stack.enter_context(_seeds())
    keras = keras_lib.keras_2()
    if keras is not None:
      stack.enter_context(_layer_numbers(keras))
    if own_tensors:
      stack.enter_context(_own_tensors())
    yield


def _seeds() -> contextlib.AbstractContextManager:
  """Makes random ops with a seed draw other numbers in each replica.

  By default a seed gives the same numbers in all replicas. Every random op asks
  one function for its seeds, which is replaced for a while.
  """
  def by_replica(get_seed):
    def get_own_seed(op_seed):
      first, second = get_seed(op_seed)
      context = tf.distribute.get_replica_context()
      if op_seed is not None and context is not None:
        replica = tf.get_static_value(context.replica_id_in_sync_group)
        second = (second + int(replica or 0) * _SEED_STEP) % _LARGEST_SEED
      return first, second
    return get_own_seed

  return replacing.replaced_in_turn(random_seed, get_seed=by_replica)


@contextlib.contextmanager
def _layer_numbers(keras: types.ModuleType) -> Iterator[None]:
  """Numbers the layers of each replica; keeps the numbers of the first."""
  backend = importlib.import_module(f'{keras.__name__}.src.backend')
  graph, numbers = tf.compat.v1.get_default_graph(), (
      backend.get_default_graph_uid_map())
  before, own = dict(numbers), {}

  def by_replica(get_numbers):
    def get_own_numbers():
      context = tf.distribute.get_replica_context()
      if context is None or tf.compat.v1.get_default_graph() is not graph:
        return get_numbers()
      return own.setdefault(context, collections.defaultdict(int, before))
    return get_own_numbers

  with replacing.replaced_in_turn(
      backend, get_default_graph_uid_map=by_replica):
    yield
  for first in list(own.values())[:1]:
    numbers.update(first)


def regularize_once() -> None:
  """Makes `tf.compat.v1.layers` add the loss of a regularizer once in a model.

  In the current graph they add it where a layer makes a variable, and not where
  it reuses one. By default a variable is taken for new if it is not global: a
  worker's copy always is, and the variable of a second replica never.
  """
  with tf.init_scope():
    if not (tf.executing_eagerly() or
            hasattr(tf1.get_default_graph(), _REGULARIZED)):
      setattr(tf1.get_default_graph(), _REGULARIZED, _Regularized())
  keras = keras_lib.keras_2()
  if keras is not None:
    base = importlib.import_module(
        f'{keras.__name__}.src.legacy_tf_layers.base')
    replacing.stay_replaced(base.Layer, add_weight=functools.partial(
        _adding_loss_once, base.Layer))


class _Regularized:
  """The regularized variables of a graph, by name.

  `by_replica` has the names that each replica has used. `terms` has the losses
  of a name, if there are replicas.
  """

  def __init__(self):
    self.by_replica = collections.defaultdict(set)
    self.terms = {}

  def collect(self, name: str, loss: Callable[[], tf.Tensor]) -> None:
    """Collects a loss that each replica evaluates, as `get_variable` does."""
    if name not in self.terms:
      if loss() is None:  # contrib's l2_regularizer(0.0) has no loss.
        return
      self.terms[name] = variable_scope._LazyEvalTensor(loss)
    key = tf1.GraphKeys.REGULARIZATION_LOSSES
    if not any(term is self.terms[name] for term in tf1.get_collection(key)):
      tf1.add_to_collection(key, self.terms[name])


def _adding_loss_once(kind: type, add_weight: Callable) -> Callable:
  """Returns `add_weight` of layers of a `kind`, with the losses of a model."""
  signature = inspect.signature(add_weight)

  def add_weight_with_loss(layer, *args, **kwargs):
    given = signature.bind(layer, *args, **kwargs)
    regularizer = given.arguments.get('regularizer')
    with tf.init_scope():
      found = getattr(tf1.get_default_graph(), _REGULARIZED, None)
      made = [] if found is None else [
          *tf1.global_variables(), *tf1.local_variables()]
    if regularizer is None or found is None or layer._keras_style:
      return add_weight(layer, *args, **kwargs)
    known = {variable.name for variable in made}
    given.arguments['regularizer'] = None
    own = found.by_replica[_number_of_replica()]
    known -= set().union(*found.by_replica.values()) - own
    variable = add_weight(*given.args, **given.kwargs)
    parts = [variable] if isinstance(variable, tf.Variable) else [*variable]
    if known.isdisjoint(part.name for part in parts):
      own.update(part.name for part in parts)
      losses = [functools.partial(_loss_of, regularizer, part)
                for part in parts]
      if not tf.distribute.has_strategy():
        layer.add_loss(losses)
      else:
        super(kind, layer).add_loss(losses)
        for part, loss in zip(parts, losses):
          found.collect(part.name, loss)
    return variable

  return add_weight_with_loss


def _loss_of(regularizer: Callable, variable: tf.Variable) -> tf.Tensor:
  """Returns a regularizer's loss, under the name that one device gives it."""
  with tf.name_scope(f'{variable.op.name}/Regularizer/'):
    return regularizer(variable)


def _own_tensors() -> contextlib.AbstractContextManager:
  """Hides the tensors in collections from other replicas, but not summaries."""
  current, owners = tf1.get_default_graph(), {}

  def adding(add):
    def add_own(graph, name, value):
      if graph is current and isinstance(value, tf.Tensor):
        owners[name, id(value)] = _number_of_replica()
      return add(graph, name, value)
    return add_own

  def getting(get):
    def get_own(graph, name, scope=None):
      number, found = _number_of_replica(), get(graph, name, scope)
      if graph is not current or number is None or (
          name == tf1.GraphKeys.SUMMARIES):
        return found
      return [value for value in found
              if owners.get((name, id(value))) in (None, number)]
    return get_own

  return replacing.replaced_in_turn(
      tf.Graph, add_to_collection=adding, get_collection=getting)


def _number_of_replica() -> int | None:
  """Returns the number of the current replica; None if it is not known."""
  context = tf.distribute.get_replica_context()
  number = context and tf.get_static_value(context.replica_id_in_sync_group)
  return None if number is None else int(number)
