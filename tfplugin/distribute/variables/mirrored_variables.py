# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mixin for a copy of each variable per device, with one-device checkpoints."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals

tf1 = tf.compat.v1


class MirroredInGraph:
  """Mixin before an extended class that mirrors variables.

  It goes before `InterceptedUpdates`.

  In a graph a variable is made, saved and fetched as on one device:

  * TensorFlow lists the copies of a `tf.Variable` beside their variable.
    So checkpoints get a `<name>/replica_1` that checkpoints of one device lack.
    Here such a variable is listed once, like a variable of `get_variable`.
  * TensorFlow finds a copy by its name, but not by an absolute name, as
    `tf.metrics.recall_at_k` makes them. These have the scope of a replica.
  * TensorFlow ignores partitioners. Slots can be named after the parts of a
    variable, and then differ from those on one device. Here it is partitioned.
  * A session can fetch the results of `strategy.run`. The hooks of
    `tf.estimator.experimental` that stop a training do so.

  In a branch, where devices cannot synchronize, each updates its own copies.
  `only` is then the number of the replica that updates.
  """

  only = None

  def _allow_variable_partition(self):
    return _is_graph()

  def _create_variable(self, next_creator, **kwargs):
    if is_unlisted(kwargs):
      kwargs['trainable'] = _tf_internals.is_trainable(kwargs)
      next_creator = _unlisting(next_creator)
    variable = super()._create_variable(next_creator, **kwargs)
    if type(variable) is _tf_internals.SyncOnReadVariable:
      variable.__class__ = ReducedAnywhere
    _tf_internals.make_sliceable(variable)
    return variable

  @contextlib.contextmanager
  def _alone(self, replica: int):
    before, self.only = self.only, replica
    try:
      yield
    finally:
      self.only = before

  def _update(self, var, fn, args, kwargs, group):
    return super()._update(var, self._here(fn), args, kwargs, group)

  def _update_non_slot(self, colocate_with, fn, args, kwargs, group):
    return super()._update_non_slot(
        colocate_with, self._here(fn), args, kwargs, group)

  def _here(self, fn):
    """Returns `fn`, without effect for replicas other than `only`, if set.

    The result must be called for each replica in turn.
    """
    if self.only is None:
      return fn
    replicas = itertools.count()

    def in_one_replica(*args, **kwargs):
      is_here = next(replicas) == self.only
      return fn(*args, **kwargs) if is_here else tf.no_op()

    return in_one_replica

  def _reduce_to(self, reduce_op, value, destinations, options):
    self._check_is_together()
    return super()._reduce_to(reduce_op, value, destinations, options)

  def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
    self._check_is_together()
    return super()._batch_reduce_to(
        reduce_op, value_destination_pairs, options)

  def _check_is_together(self):
    if self.only is not None:
      raise RuntimeError(
          'Devices cannot wait for each other inside a `tf.cond` or a loop of '
          'one of them. Received: a reduction, as of gradients, or a call for '
          'each replica, there. Make it outside, or put the condition around '
          'all devices, by `merge_call` of the replica context, as '
          'MixedPrecisionLossScaleOptimizer does.')

  def _call_for_each_replica(self, fn, args, kwargs):
    self._check_is_together()
    if _is_graph():
      fn = _naming_as_first(fn)
    result = super()._call_for_each_replica(fn, args, kwargs)
    # Estimator itself unpacks an EstimatorSpec.
    if _is_graph() and not hasattr(result, 'train_op'):
      tf.nest.map_structure(_tf_internals.make_fetchable, result)
    return result


class ReducedAnywhere(_tf_internals.SyncOnReadVariable):
  """A statistic, such as batch norm's, that replicas can make a `Saver` of.

  `tf.keras.estimator.model_to_estimator` does so. A Saver reads the variable as
  a whole, which TensorFlow refuses in a replica.
  """

  def _get_cross_replica(self):
    read = super()._get_cross_replica
    context = tf.distribute.get_replica_context()
    if context is None or not tf.distribute.has_strategy():
      return read()
    return context.merge_call(lambda _: read())


def _is_graph() -> bool:
  """Returns whether a v1 graph is built, not eager code or a `tf.function`."""
  return not tf1.executing_eagerly_outside_functions()


def is_unlisted(kwargs: dict[str, Any]) -> bool:
  """Returns whether a variable creator must not list the variable's copies.

  `kwargs` are the creator's arguments. `tf.Variable` passes no `collections`.
  For a single copy, `colocate_with` is its device.
  """
  beside = kwargs.get('colocate_with')
  has_copies = beside is None or _tf_internals.is_distributed_variable(beside)
  return has_copies and 'collections' not in kwargs and _is_graph()


def _naming_as_first(fn: Callable) -> Callable:
  """Returns `fn`, which makes variables in the name scope of the first replica.

  It must be called for each replica in turn.
  """
  scopes, fn = [], _tf_internals.converted_as_here(fn)

  @functools.wraps(fn)
  @tf.autograph.experimental.do_not_convert
  def renaming(*args, **kwargs):
    scope = tf.get_current_name_scope()
    scopes.append(scope)

    def create(next_creator, **arguments):
      name = arguments.get('name')
      if name and scope and name.startswith(f'{scope}/'):
        arguments['name'] = f'{scopes[0]}{name[len(scope):]}'.lstrip('/')
      return next_creator(**arguments)

    with tf.variable_creator_scope(create):
      return fn(*args, **kwargs)

  return renaming


def _unlisting(next_creator):

  def create(**kwargs):
    with _tf_internals.private_variables():
      return next_creator(**kwargs)

  return create
