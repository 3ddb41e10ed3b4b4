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


@contextlib.contextmanager
def inputs_through(estimator: tf.estimator.Estimator,
                   change: Callable[[Any], Any]) -> Iterator[None]:
  """Makes an Estimator pass the result of each input_fn through `change`.

  A private method calls an input_fn with the arguments that it declares. A
  public wrapper around the input_fn would hide these.
  """
  original = estimator._call_input_fn

  def call(*args, **kwargs):
    data = original(*args, **kwargs)
    with tf.device('/cpu:0'):  # The device of an input_fn.
      return change(data)

  estimator._call_input_fn = call
  try:
    yield
  finally:
    del estimator._call_input_fn


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
  original = multi_device_iterator_ops._create_device_dataset
  options = tf.data.Options()
  options.autotune.enabled = False
  multi_device_iterator_ops._create_device_dataset = (
      lambda *args: original(*args).with_options(options))
  try:
    yield
  finally:
    multi_device_iterator_ops._create_device_dataset = original
