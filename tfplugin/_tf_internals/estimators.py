# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sessions, servers, clocks, inputs and evaluators of Estimators."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import sys
import types
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any
from typing import Callable

import tensorflow as tf

# Makes the dataset of one device, which a strategy reads; see `untuned_inputs`.
from tensorflow.python.data.ops import multi_device_iterator_ops

# Starts the server of a task with a strategy; see
# `servers_and_sessions_through`.
from tensorflow.python.distribute import distribute_coordinator

# Give summaries their times, and flush them; see `timers_by`.
from tensorflow.python.summary.writer import event_file_writer
from tensorflow.python.summary.writer import writer

# Have the timer of hooks, and of checkpoints that are kept; see `timers_by`.
from tensorflow.python.training import basic_session_run_hooks
from tensorflow.python.training import saver

# Makes the sessions of every MonitoredSession; see
# `servers_and_sessions_through`.
from tensorflow.python.training import session_manager

from tfplugin._tf_internals import replacing

tf1 = tf.compat.v1

# Processes that save together count steps, not seconds, as TensorFlow does.
_STEPS_PER_SAVE = 1000


def user_init_fn(scaffold: tf.compat.v1.train.Scaffold | None,
                 ) -> Callable | None:
  """Returns a program's `init_fn` of a scaffold, not bound to it, or None."""
  return getattr(scaffold, '_user_init_fn', None)


def changed_scaffold(scaffold: tf.compat.v1.train.Scaffold,
                     **fields: Any) -> tf.compat.v1.train.Scaffold:
  """Returns `scaffold` itself, with other `fields`: hooks may have it."""
  tf1.train.Scaffold.__init__(
      scaffold, copy_from_scaffold=scaffold, **fields)
  return scaffold


def first_of_ends(act: Callable[[tf.compat.v1.Session], None]
                 ) -> AbstractContextManager:
  """Makes an Estimator that trains call `act` before the `end` of any hook.

  `act` is called with the session, at least once, after the last step. Hooks of
  a Scaffold or an Estimator come before or after a caller's hooks.
  """
  first = tf1.train.SessionRunHook()
  first.end = act

  def put_first(arguments):
    # Which of the two comes first depends on the kind of cluster.
    for name in ('hooks', 'chief_only_hooks'):
      arguments[name] = [first, *(arguments.get(name) or ())]

  return _training_sessions_through(put_first)


def saving_without_summaries(directory: str) -> AbstractContextManager:
  """Makes a process of several synchronous ones save in any case.

  Such a process makes the hook that saves only together with the hook of
  summaries, so a program without summaries would save nothing. All processes
  save, since what is saved may be a sum over them; `directory` is for this one.
  """

  def save_always(arguments):
    steps = arguments.get('save_checkpoint_steps') or (
        _STEPS_PER_SAVE if arguments.get('save_checkpoint_secs') else None)
    if steps and not arguments.get('save_summaries_steps'):
      arguments['hooks'] = [
          *(arguments.get('hooks') or ()), tf1.train.CheckpointSaverHook(
              directory, save_steps=steps, scaffold=arguments['scaffold'],
              save_graph_def=arguments['save_graph_def'])]

  return _training_sessions_through(save_always)


def session_config_through(change: Callable) -> AbstractContextManager:
  """Makes `change` replace the settings of Estimator's training session."""
  return _training_sessions_through(lambda arguments: arguments.update(
      config=change(arguments.get('config'))))


def _training_sessions_through(change: Callable[[dict], None]
                              ) -> AbstractContextManager:
  """Edits the arguments of an Estimator's training session by `change`."""
  def changed(original):
    signature = inspect.signature(original)

    @functools.wraps(original)  # A nested context reads the signature.
    def make(*args, **kwargs):
      bound = signature.bind(*args, **kwargs)
      change(bound.arguments)
      return original(*bound.args, **bound.kwargs)

    return make

  training = sys.modules[tf.estimator.Estimator.__module__].training
  return replacing.replaced(training, MonitoredTrainingSession=changed)


@contextlib.contextmanager
def timers_by(clock: Callable[[], float]) -> Iterator[None]:
  """Makes TensorFlow's timers, time limits and summaries read `clock`.

  When the host's clock, which they read, is set back by an hour, no checkpoint
  is saved or kept and no summary is flushed for an hour.
  """
  with contextlib.ExitStack() as stack:
    for owner in (basic_session_run_hooks, session_manager, saver, writer,
                  event_file_writer,
                  sys.modules[tf.estimator.TrainSpec.__module__]):
      stack.enter_context(replacing.replaced(
          owner, time=lambda original: types.SimpleNamespace(
              **{**vars(original), 'time': clock})))
    yield


def servers_with(options: tf.compat.v1.ConfigProto) -> AbstractContextManager:
  """Sets all options of the server that Estimator starts without a strategy."""
  return _servers_through(sys.modules[tf.estimator.TrainSpec.__module__],
                          lambda arguments: {**arguments, 'config': options})


@contextlib.contextmanager
def servers_and_sessions_through(
    server_config: Callable[[dict], dict],
    session_config: Callable[[tf1.ConfigProto | None], tf1.ConfigProto],
) -> Iterator[None]:
  """Changes the arguments with which TensorFlow makes servers and sessions.

  `server_config` maps the keyword arguments of a `tf.distribute.Server`,
  `session_config` the settings of a session.
  """
  def changed_sessions(original):
    def make(target='', graph=None, config=None):
      return original.Session(target, graph, session_config(config))
    return types.SimpleNamespace(Session=make)

  with contextlib.ExitStack() as stack:
    for owner in (sys.modules[tf.estimator.TrainSpec.__module__],
                  distribute_coordinator):
      stack.enter_context(_servers_through(owner, server_config))
    stack.enter_context(
        replacing.replaced(session_manager, session=changed_sessions))
    yield


def _servers_through(owner: Any,
                     change: Callable[[dict], dict]) -> AbstractContextManager:
  """Changes the keyword arguments with which a module makes servers."""
  def changed(original):
    def make(*cluster, **kwargs):
      return original.Server(
          **change({**dict(zip(['server_or_cluster_def'], cluster)), **kwargs}))
    return types.SimpleNamespace(
        Server=make, ClusterSpec=original.ClusterSpec)

  return replacing.replaced(owner, server_lib=changed)


def start_at_once(estimator: tf.estimator.Estimator) -> None:
  """Starts a worker without TensorFlow's delay, unless the user set one."""
  if estimator.config.experimental_max_worker_delay_secs is None:
    estimator._config._experimental_max_worker_delay_secs = 0


@functools.cache
def mend_early_stopping(takes: Callable[[Any, float | None], bool],
                        is_chief: Callable[[Any], bool]) -> None:
  """Makes `make_early_stopping_hook` work with asynchronous strategies.

  `takes` gets a strategy and `run_every_secs`, and returns whether it is such a
  strategy; `is_chief`, whether a RunConfig is the chief's. Estimator treats
  every strategy as a MultiWorkerMirroredStrategy: it tests a generator, which
  is always true, in place of `any`. The hook for that strategy refuses seconds
  and sums over replicas. The hooks for a chief and for other tasks, made
  without a strategy, are private.
  """
  public = tf.estimator.experimental
  original = public.make_early_stopping_hook
  module = sys.modules[original.__module__]

  @functools.wraps(original)
  def make_early_stopping_hook(estimator, should_stop_fn, run_every_secs=60,
                               run_every_steps=None):
    config = getattr(estimator, 'config', None)
    if isinstance(config, tf.estimator.RunConfig) and takes(
        config.train_distribute, run_every_secs):
      # The property returns a copy.
      config._is_chief, config._train_distribute = is_chief(config), None
      estimator = copy.copy(estimator)
      estimator._config = config
    return original(estimator, should_stop_fn, run_every_secs, run_every_steps)

  module.make_early_stopping_hook = make_early_stopping_hook
  public.make_early_stopping_hook = make_early_stopping_hook


def inputs_through(estimator: tf.estimator.Estimator,
                   change: Callable[[Any], Any]) -> AbstractContextManager:
  """Makes an Estimator pass the result of each input_fn through `change`.

  A wrapper around an input_fn would hide the arguments that it declares. The
  change is a method, not a function: a deep copy of the Estimator, which
  TensorFlow makes for the task of a strategy, passes its own configuration.
  """
  def changed(original):
    @functools.wraps(original)
    def changed_input(self, *args, **kwargs):
      data = original.__func__(self, *args, **kwargs)
      with tf.device('/cpu:0'):  # The device of an input_fn.
        return change(data)
    return types.MethodType(changed_input, estimator)

  return replacing.replaced(estimator, _call_input_fn=changed)


def datasets_inside(op: tf.Operation) -> list[tf.Operation]:
  """Returns the dataset ops in the functions of an op such as `flat_map`'s."""
  names = [value.func.name for value in op.node_def.attr.values()
           if value.func.name]
  return [inner for name in names
          for inner in op.graph._get_function(name).graph.get_operations()
          if 'Dataset' in inner.type]


def untuned_inputs() -> AbstractContextManager:
  """Makes strategies create the dataset of each device without autotune.

  With autotune, closing it could wait a minute for the thread that tunes.
  """
  options = tf.data.Options()
  options.autotune.enabled = False
  return replacing.replaced(
      multi_device_iterator_ops, _create_device_dataset=lambda original: (
          lambda *args: original(*args).with_options(options)))


@contextlib.contextmanager
def evaluator_asks(goes_on: Callable[[], bool],
                   evaluate: Callable[[tf.estimator.Estimator,
                                       Callable[[], Any]], Any],
                   wait: Callable[[float], None]) -> Iterator[None]:
  """Makes evaluators of `tf.estimator.train_and_evaluate` call functions.

  `goes_on` is called before each round; False ends the evaluator. `evaluate` is
  called for each round. Its arguments are the Estimator and a function that
  evaluates and exports the newest checkpoint; it returns that function's
  result. `wait` is called with a number of seconds before the first round and
  between rounds.
  """
  training = sys.modules[tf.estimator.TrainSpec.__module__]
  rounds = replacing.replaced(
      training._ContinuousEvalListener,
      before_eval=lambda before: lambda self: before(self) and goes_on())
  evaluations = replacing.replaced(
      training._TrainingExecutor._Evaluator,
      evaluate_and_export=lambda once: lambda self: evaluate(
          self._estimator, functools.partial(once, self)))
  waits = replacing.replaced(training, time=lambda clock: types.SimpleNamespace(
      time=clock.time, sleep=wait))
  with rounds, evaluations, waits:
    yield


def evaluation_of_saves(
    estimator: tf.estimator.Estimator, eval_spec: tf.estimator.EvalSpec,
    max_steps: int | None) -> tf.compat.v1.train.CheckpointSaverListener:
  """Returns Estimator's listener that evaluates and exports in a `master`."""
  training = sys.modules[tf.estimator.TrainSpec.__module__]
  return training._NewCheckpointListenerForEvaluate(
      training._TrainingExecutor._Evaluator(estimator, eval_spec, max_steps),
      eval_spec.throttle_secs, training._ContinuousEvalListener())
