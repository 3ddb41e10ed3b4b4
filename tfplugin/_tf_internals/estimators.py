# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What Estimators keep private: TPU shards, rounds of evaluators, inputs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

# Makes the dataset of one device, which a strategy reads; see `untuned_inputs`.
from tensorflow.python.data.ops import multi_device_iterator_ops

# How many TPU shards are being built; see `number_of_tpu_shards`.
from tensorflow.python.tpu import tpu_function as tpu_function


def number_of_tpu_shards() -> Optional[int]:
  """The number of shards of the `tpu_shard_context` around the call, or None.

  The public `tf.compat.v1.tpu.shard` makes the context; nothing public asks for
  it.
  """
  return tpu_function.get_tpu_context().number_of_shards


def user_init_fn(scaffold: Optional[tf.compat.v1.train.Scaffold],
                 ) -> Optional[Callable]:
  """Returns the function that a program gave to a scaffold, or None.

  The public `init_fn` is bound to a scaffold, which may not be the one that a
  session is made with.

  Args:
    scaffold: That of a spec.
  """
  return getattr(scaffold, '_user_init_fn', None)


@contextlib.contextmanager
def evaluator_asks(goes_on: Callable[[], bool]) -> Iterator[None]:
  """Lets `tf.estimator.train_and_evaluate`, in an evaluator, ask for its end.

  It asks a listener before each round, which is private, and no argument.

  Args:
    goes_on: Called before each round; False ends the evaluator.

  Yields:
    Nothing.
  """
  training = sys.modules[tf.estimator.TrainSpec.__module__]
  listener = training._ContinuousEvalListener
  original = listener.before_eval
  listener.before_eval = lambda self: original(self) and goes_on()
  try:
    yield
  finally:
    listener.before_eval = original


@contextlib.contextmanager
def inputs_through(estimator: tf.estimator.Estimator,
                   change: Callable[[Any], Any]) -> Iterator[None]:
  """Lets an Estimator change what its input_fns return, and before it is read.

  It calls them with the arguments that they ask for, in a private method; a
  function around an input_fn could not show which these are.

  Args:
    estimator: The Estimator.
    change: Gets what an input_fn has returned.

  Yields:
    Nothing.
  """
  original = estimator._call_input_fn

  def call(*args, **kwargs):
    data = original(*args, **kwargs)
    with tf.device('/cpu:0'):  # As it is around an input_fn.
      return change(data)

  estimator._call_input_fn = call
  try:
    yield
  finally:
    del estimator._call_input_fn


@contextlib.contextmanager
def untuned_inputs() -> Iterator[None]:
  """Lets strategies make the dataset of each device without autotune.

  It holds one element; nothing public reaches its options. Tuned, its end would
  wait for the thread that tunes, for up to a minute.

  Yields:
    Nothing.
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
