# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What Estimators keep private: TPU shards, rounds of evaluators, inputs."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import sys
import types
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
def evaluator_asks(goes_on: Callable[[], bool],
                   evaluate: Callable[[tf.estimator.Estimator,
                                       Callable[[], Any]], Any]
                  ) -> Iterator[None]:
  """Lets `tf.estimator.train_and_evaluate`, in an evaluator, ask for its end.

  It asks a listener before each round, and makes the round by an object; both
  are private, and no argument.

  Args:
    goes_on: Called before each round; False ends the evaluator.
    evaluate: Called for each round, with the Estimator and a function that
      evaluates its newest checkpoint and exports it; returns its result.

  Yields:
    Nothing.
  """
  training = sys.modules[tf.estimator.TrainSpec.__module__]
  listener = training._ContinuousEvalListener
  evaluator = training._TrainingExecutor._Evaluator
  before, once = listener.before_eval, evaluator.evaluate_and_export
  listener.before_eval = lambda self: before(self) and goes_on()
  evaluator.evaluate_and_export = lambda self: evaluate(
      self._estimator, functools.partial(once, self))
  try:
    yield
  finally:
    listener.before_eval, evaluator.evaluate_and_export = before, once


@contextlib.contextmanager
def first_of_ends(act: Callable[[tf.compat.v1.Session], None]
                 ) -> Iterator[None]:
  """Lets an Estimator that trains call `act` before the `end` of any hook.

  Hooks of a Scaffold or an Estimator come before those that a caller passes, or
  after them. It makes its session by a function of a module that is private.

  Args:
    act: Called with the session, at least once, when its last step is made.

  Yields:
    Nothing.
  """
  training = sys.modules[tf.estimator.Estimator.__module__].training
  original = training.MonitoredTrainingSession
  signature = inspect.signature(original)
  first = tf.compat.v1.train.SessionRunHook()
  first.end = act

  def make(*args, **kwargs):
    bound = signature.bind(*args, **kwargs)
    # Which of the two is first depends on who runs the cluster.
    for name in ('hooks', 'chief_only_hooks'):
      bound.arguments[name] = [first, *(bound.arguments.get(name) or ())]
    return original(*bound.args, **bound.kwargs)

  training.MonitoredTrainingSession = make
  try:
    yield
  finally:
    training.MonitoredTrainingSession = original


@contextlib.contextmanager
def servers_with(options: tf.compat.v1.ConfigProto) -> Iterator[None]:
  """Lets `tf.estimator.train_and_evaluate` start a task's server with options.

  It starts one, where there is no strategy, with the options of GPUs alone, by
  a module that is private.

  Args:
    options: The server's settings.

  Yields:
    Nothing.
  """
  training = sys.modules[tf.estimator.TrainSpec.__module__]
  original = training.server_lib

  def start(*args, **kwargs):
    return original.Server(*args, **{**kwargs, 'config': options})

  training.server_lib = types.SimpleNamespace(
      Server=start, ClusterSpec=original.ClusterSpec)
  try:
    yield
  finally:
    training.server_lib = original


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


def datasets_inside(op: tf.Operation) -> list[tf.Operation]:
  """Returns the ops of datasets that a function of a dataset's op makes.

  No public API gives the graph of a function that an op calls.

  Args:
    op: Makes a dataset, such as that of `flat_map`.
  """
  names = [value.func.name for value in op.node_def.attr.values()
           if value.func.name]
  return [inner for name in names
          for inner in op.graph._get_function(name).graph.get_operations()
          if 'Dataset' in inner.type]


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


@functools.cache
def mend_early_stopping(takes: Callable[[Any], bool],
                        is_chief: Callable[[Any], bool]) -> None:
  """Lets `make_early_stopping_hook` work with strategies that are not in step.

  It takes every strategy for a MultiWorkerMirroredStrategy, by a generator in
  the place of `any`, whose hook refuses seconds and sums over replicas. The
  hooks for a chief and for the others, which it makes without a strategy, are
  private.

  Args:
    takes: Whether a strategy is one for which it is to do that.
    is_chief: Whether a RunConfig is that of the chief.
  """
  public = tf.estimator.experimental
  original = public.make_early_stopping_hook
  module = sys.modules[original.__module__]

  @functools.wraps(original)
  def make_early_stopping_hook(estimator, *args, **kwargs):
    config = getattr(estimator, 'config', None)
    if isinstance(config, tf.estimator.RunConfig) and takes(
        config.train_distribute):
      # The property returns a copy.
      config._is_chief, config._train_distribute = is_chief(config), None
      estimator = copy.copy(estimator)
      estimator._config = config
    return original(estimator, *args, **kwargs)

  module.make_early_stopping_hook = make_early_stopping_hook
  public.make_early_stopping_hook = make_early_stopping_hook
