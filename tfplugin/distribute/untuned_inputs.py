# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inputs without tf.data's autotune, whose thread delays the end of a session.

Closing a session waits for the tuning thread of each iterator, which may sleep
for up to a minute. A strategy has two iterators: the user's and the device's.
One tuned iterator is enough.
"""

from __future__ import annotations

import functools
import warnings

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import cluster_task

# Datasets inside these may request autotune, too; they are built in functions.
# The datasets of `from_generator` are inside one.
_NESTING = ('Interleave', 'FlatMap')


class UntunedInputs:
  """Mixin of an extended class that makes the inputs of Estimator untuned.

  It is the last of the mixins that make inputs, before TensorFlow's class.
  """

  def _make_input_fn_iterator(
      self, input_fn,
      replication_mode=tf.distribute.InputReplicationMode.PER_WORKER):

    @functools.wraps(input_fn)
    def make_input(*args, **kwargs):
      return untuned(input_fn(*args, **kwargs))

    cluster_task.warn_of_evaluation()
    with _tf_internals.untuned_inputs():
      return super()._make_input_fn_iterator(make_input, replication_mode)


def untuned(data):
  """Returns a dataset without autotune, unless it requests autotune.

  A request is `tf.data.AUTOTUNE` in one of its steps, or in its options. Other
  results of an input_fn are returned unchanged.

  Example:
    >>> with tf.Graph().as_default():
    ...   untuned(tf.data.Dataset.range(3)).options().autotune.enabled
    False
  """
  if not isinstance(data, tf.data.Dataset) or (
      _options_of(data).autotune.enabled is not None) or _asks(data):
    return data
  options = tf.data.Options()
  options.autotune.enabled = False
  return data.with_options(options)


def _options_of(data: tf.data.Dataset) -> tf.data.Options:
  """Returns the options; in a graph without TensorFlow's warning about them."""
  with warnings.catch_warnings():
    warnings.filterwarnings('ignore', 'To make it possible to preserve tf.data')
    return data.options()


def _asks(data: tf.data.Dataset) -> bool:
  """Returns whether a step of a dataset requests autotune, or may do so."""
  if tf.executing_eagerly():
    return True  # The steps cannot be inspected.
  pending, seen = [tf.data.experimental.to_variant(data).op], set()
  while pending:
    op = pending.pop()
    if op in seen:
      continue
    seen.add(op)
    if any(tf.get_static_value(tensor) == tf.data.AUTOTUNE
           for name, tensor in _arguments(op)
           if 'parallel' in name or name == 'buffer_size'):
      return True
    pending += [tensor.op for tensor in op.inputs
                if tensor.dtype == tf.variant]
    if any(word in op.type for word in _NESTING):
      pending += _tf_internals.datasets_inside(op)
  return False


def _arguments(op: tf.Operation) -> list[tuple[str, tf.Tensor]]:
  """Returns the inputs of an op by name, those in lists included."""
  tensors, named = list(op.inputs), []
  for argument in op.op_def.input_arg:
    size = 1
    if argument.number_attr:
      size = op.get_attr(argument.number_attr)
    elif argument.type_list_attr:
      size = len(op.get_attr(argument.type_list_attr))
    named += [(argument.name, tensor) for tensor in tensors[:size]]
    del tensors[:size]
  return named
