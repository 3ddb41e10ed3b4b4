# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inputs of Estimators, and the datasets behind them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from typing import Callable

import tensorflow as tf

# Makes the dataset of one device, which a strategy reads; see `untuned_inputs`.
from tensorflow.python.data.ops import multi_device_iterator_ops

from tfplugin._tf_internals import replacing


@contextlib.contextmanager
def inputs_through(estimator: tf.estimator.Estimator,
                   change: Callable[[Any], Any]) -> Iterator[None]:
  """Makes an Estimator pass the result of each input_fn through `change`.

  A private method calls an input_fn with the arguments that it declares. A
  public wrapper around the input_fn would hide these.
  """
  def changed(original):
    def changed_input(*args, **kwargs):
      data = original(*args, **kwargs)
      with tf.device('/cpu:0'):  # The device of an input_fn.
        return change(data)
    return changed_input

  with replacing.replaced(estimator, _call_input_fn=changed):
    yield


def datasets_inside(op: tf.Operation) -> list[tf.Operation]:
  """Returns the dataset ops inside the functions of a dataset's op.

  An example is the op of `flat_map`. No public API gives the graph of a
  function that an op calls.
  """
  names = [value.func.name for value in op.node_def.attr.values()
           if value.func.name]
  return [inner for name in names
          for inner in op.graph._get_function(name).graph.get_operations()
          if 'Dataset' in inner.type]


@contextlib.contextmanager
def untuned_inputs() -> Iterator[None]:
  """Makes strategies create the dataset of each device without autotune.

  The dataset holds one element, and no public API reaches its options. With
  autotune, closing it could wait a minute for the thread that tunes.
  """
  options = tf.data.Options()
  options.autotune.enabled = False
  with replacing.replaced(
      multi_device_iterator_ops, _create_device_dataset=lambda original: (
          lambda *args: original(*args).with_options(options))):
    yield
