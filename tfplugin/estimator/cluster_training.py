# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training and evaluation of an Estimator in a cluster that ends in order."""

from __future__ import annotations

import contextlib
import functools
import os

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.checkpoints import model_dir_lock
from tfplugin.distribute import cluster_config
from tfplugin.distribute import cluster_task
from tfplugin.distribute import placement
from tfplugin.distribute import time_limit
from tfplugin.distribute import untuned_inputs
from tfplugin.distribute.sessions import membership
from tfplugin.distribute.sessions import server_options
from tfplugin.events import clock
from tfplugin.events import event_log
from tfplugin.events import process
from tfplugin.events import record
from tfplugin.hooks import checkpoint_guard_hook
from tfplugin.hooks import contact_hooks
from tfplugin.hooks import events_hook
from tfplugin.hooks import telemetry_hook
from tfplugin.hooks import tensorboard_hook
from tfplugin.hooks.shutdown import chief_report
from tfplugin.hooks.shutdown import last_exports
from tfplugin.hooks.shutdown import lost_peers
from tfplugin.hooks.shutdown import shutdown_hooks
from tfplugin.hooks.shutdown import task_records
from tfplugin.hooks.shutdown import waits

tf1 = tf.compat.v1


def train_and_evaluate(estimator: tf.estimator.Estimator,
                       train_spec: tf.estimator.TrainSpec,
                       eval_spec: tf.estimator.EvalSpec,
                       *,
                       start_limit_secs: float = 300.0,
                       finish_limit_secs: float = 120.0,
                       contact_limit_secs: float | None = 600.0):
  """Runs this process's task of the cluster, as TensorFlow's function does.

  Every process calls it with the same arguments. Each role does more than with
  `tf.estimator.train_and_evaluate`:

    worker: starts as soon as the chief has initialised the variables, also
      after a restart of a parameter server; TensorFlow checks only every 30 s.
      It reports its end to the parameter servers before its session is closed.
      It ends with an error when the chief does not restart in time.
    chief, and a single process: keeps the newest checkpoint whole, finite and
      new, after any failure (`tfplugin.hooks.CheckpointGuardHook`), and refuses
      other runs in the model_dir.
    chief: stays until every worker has reported its end, and then reports its
      own. It saves its last checkpoint then, for every kind of end
      (`max_steps`, an input, a hook). The checkpoint has all steps of the
      workers, with their clips. Until then it saves at intervals. It does not
      wait after a signal, nor when no worker has made a step for half of
      `finish_limit_secs`: after training with `SyncReplicasOptimizer` a worker
      may wait for the chief's session to end.
    chief: warns of a worker that has neither reported nor made a step in that
      time, and reports in its place: the training is complete without it.
    chief: warns if the default moving rate counts absent workers.
    chief and worker: name the awaited task while a parameter server is down,
      and continue after a step that TensorFlow would wait for without end
      (`tfplugin.hooks.RefusedStepHook`).
    ps: ends when the chief and every worker have reported, and with an error
      when the chief does not restart in time.
    chief and worker without a ps, whose steps need every worker: end with
      `LostPeerError`, or with status 75, when one is lost or without data.
    master: is the chief, evaluates and exports, with a strategy, too. There and
      in a single process exporters also learn of an end before `max_steps`.
    evaluator: ends when the chief has reported, or does not restart in time,
      and the newest checkpoint is evaluated. The report ends its waits. A chief
      that is the only task of its cluster opens no port, and has to report.

  A dataset without `tf.data.AUTOTUNE` is not tuned: the end of a session, and a
  new one after a fault, would wait for the tuning thread. Tasks that train
  write scalars for TensorBoard, and the chief writes the layout of its page
  (`tfplugin.hooks.TensorBoardHook`). Every role writes its events to
  `model_dir/events` (docs/events.md), and its stacks to the standard error at
  SIGUSR1. SIGTERM and Ctrl-C end the training of chief and workers after the
  current step, with a last checkpoint.

  Also set `RunConfig(experimental_max_worker_delay_secs=0)`: by default
  TensorFlow delays worker k by 5 s * (k + 1).

  Args:
    estimator: The Estimator; its configuration has cluster and task.
    train_spec: Input and length of the training.
    eval_spec: Input and interval of the evaluation.
    start_limit_secs: How long a worker waits for the chief to initialise the
      variables, in seconds. Also the limit of its wait for the others at a
      synchronous start or, without a ps, in the first step.
    finish_limit_secs: How long the chief waits at its end, in seconds, while no
      worker makes a step.
    contact_limit_secs: How long a task whose port is not open (the chief's, a
      parameter server's) may take to restart before it counts as lost, in
      seconds: longer than a restart takes. None waits without end, for networks
      in which tasks cannot reach each other's ports. Without a ps: how long a
      step may take.

  Returns:
    The result of `tf.estimator.train_and_evaluate`: metrics and exports of a
    single process, None in a cluster, also in one with this task only.

  Raises:
    TimeoutError: a wait reached its limit; the message names the awaited task.
    RuntimeError: another run uses the model_dir, another process listens on the
      task's port, or this process has run the task before: beside parameter
      servers a process can do one run. Or TensorFlow cannot place a condition.
    TypeError: a limit is not a number.
    ValueError: a limit is not positive and finite, or no checkpoint of the
      model_dir is whole and finite.
    OSError: the disk stayed full or read-only.
    KeyboardInterrupt, SystemExit: a signal ended it; see StopInOrderHook.

  Example:
    >>> import tensorflow as tf
    >>> import tfplugin.estimator
    >>> def model_fn(features, labels, mode):
    ...   w = tf.compat.v1.get_variable('w', initializer=0.0)
    ...   loss = tf.reduce_mean(tf.square(w * features - labels))
    ...   optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.25)
    ...   return tf.estimator.EstimatorSpec(
    ...       mode, loss=loss, train_op=optimizer.minimize(
    ...           loss, tf.compat.v1.train.get_global_step()))
    >>> def input_fn():
    ...   return tf.data.Dataset.from_tensors(([1.0], [2.0])).repeat()
    >>> estimator = tf.estimator.Estimator(model_fn)
    >>> metrics, _ = tfplugin.estimator.train_and_evaluate(
    ...     estimator, tf.estimator.TrainSpec(input_fn, max_steps=1),
    ...     tf.estimator.EvalSpec(input_fn, steps=1))
    >>> float(metrics['loss'])  # w = 0.25 * 2 * 2 = 1
    1.0

  Differences from tf.contrib: with contrib a ps never ended, the chief left
  before its workers, and a worker that lost the race for the start lost 30 s.
  """
  time_limit.check('start_limit_secs', start_limit_secs)
  time_limit.check('finish_limit_secs', finish_limit_secs)
  time_limit.check('contact_limit_secs', contact_limit_secs, or_none=True)
  config = estimator.config
  process.write_stacks_on_signal()
  explained = cluster_config.explain()
  tf1.logging.info('tfplugin on TF_CONFIG: %s', explained)
  task = cluster_task.from_config(config)
  cluster_task.warn_of_temporary(config.model_dir)
  membership.check(cluster_task.from_environment())
  cluster_task.check_first_run(task)
  with cluster_task.evaluation_kept(), event_log.recording(
      config.model_dir, events_hook.task_name(config), cluster=explained), \
      cluster_task.occupied_port_named(task), chief_report.nothing_left(), \
      lost_peers.exit_status_set():
    return _train_and_evaluate(
        task, estimator, train_spec, eval_spec, start_limit_secs,
        finish_limit_secs, contact_limit_secs)


def _train_and_evaluate(
    task: cluster_task.ClusterTask, estimator: tf.estimator.Estimator,
    train_spec: tf.estimator.TrainSpec, eval_spec: tf.estimator.EvalSpec,
    start_limit_secs: float, finish_limit_secs: float,
    contact_limit_secs: float | None):
  """Runs this process's task; see `train_and_evaluate`."""
  config = estimator.config
  if task.job == 'ps':
    waits.run_parameter_server(
        config, contact_limit_secs=contact_limit_secs)
    return None
  stop = shutdown_hooks.StopInOrderHook()
  report = shutdown_hooks.ReportFinishedHook(
      config, unless=stop.has_stopped)
  exports = last_exports.LastExports(eval_spec)
  last_hooks = _last_hooks(task, estimator, train_spec.max_steps, stop, report)
  with contextlib.ExitStack() as stack:
    hooks = _first_hooks(
        task, config, start_limit_secs, contact_limit_secs,
        finish_limit_secs / 2, stack)
    if task.is_chief:
      train_spec = _guarded(
          _with_evaluation(estimator, train_spec, exports), config, task,
          waits.LastSteps(task, train_spec.max_steps, finish_limit_secs / 2,
                          stop.has_stopped), stack)
    train_spec = train_spec._replace(
        hooks=(*hooks, *train_spec.hooks, *last_hooks))
    _enter_limits(stack, task, estimator, start_limit_secs)
    stack.callback(stop.release)
    if task.job == 'evaluator':
      train_spec = _evaluated(
          config, train_spec, exports, contact_limit_secs, stack)
    result = _as_tensorflow(estimator, train_spec, exports.eval_spec)
    stop.raise_if_stopped()
    if task.trains:
      result = exports.finish(result)
    # Also for a single chief, which may have an evaluator.
    if task.trains and (task.cluster_spec.jobs or cluster_config.is_set()):
      _report(task, config, finish_limit_secs, report)
  return result


def _as_tensorflow(estimator: tf.estimator.Estimator,
                   train_spec: tf.estimator.TrainSpec,
                   eval_spec: tf.estimator.EvalSpec):
  """Runs the task as `tf.estimator.train_and_evaluate` runs it in its cluster.

  TensorFlow only trains in the only task of a cluster: an evaluator, which no
  cluster names, evaluates and exports. A strategy has removed such a cluster.
  """
  if estimator.config.train_distribute is None or (
      estimator.config.cluster_spec or not cluster_config.only_trains()):
    return tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
  tf1.logging.info('TF_CONFIG has a cluster, so this task only trains. Start '
                   'an evaluator, which evaluates and exports.')
  estimator.train(train_spec.input_fn, hooks=list(train_spec.hooks),
                  max_steps=train_spec.max_steps,
                  saving_listeners=train_spec.saving_listeners)
  return None


def _with_evaluation(estimator: tf.estimator.Estimator,
                     train_spec: tf.estimator.TrainSpec,
                     exports: last_exports.LastExports):
  """Returns `train_spec`; with a strategy, a `master` evaluates its saves.

  TensorFlow does so without a strategy. A strategy makes the master a chief.
  """
  if estimator.config.train_distribute is None or (
      not cluster_config.is_master()):
    return train_spec
  return train_spec._replace(saving_listeners=(
      *train_spec.saving_listeners, _tf_internals.evaluation_of_saves(
          estimator, exports.eval_spec, train_spec.max_steps)))


def _enter_limits(
    stack: contextlib.ExitStack, task: cluster_task.ClusterTask,
    estimator: tf.estimator.Estimator, start_limit_secs: float) -> None:
  """Enters contexts: inputs, timers, the task's server, messages, limits."""
  for context in (
      _tf_internals.inputs_through(estimator, untuned_inputs.untuned),
      _tf_internals.timers_by(clock.now),
      _tf_internals.servers_with(server_options.of_run(estimator.config)),
      _tf_internals.session_config_through(
          functools.partial(server_options.with_filters, task)),
      membership.joining(task, estimator), placement.conditions_explained(),
      time_limit.start_limited_to(start_limit_secs)):
    stack.enter_context(context)


def _evaluated(
    config: tf.estimator.RunConfig, train_spec: tf.estimator.TrainSpec,
    exports: last_exports.LastExports, contact_limit_secs: float | None,
    stack: contextlib.ExitStack) -> tf.estimator.TrainSpec:
  """Makes an evaluator end with the last checkpoint of the run."""
  # The RunConfig of an evaluator has no cluster.
  watch = chief_report.Watch(cluster_task.from_environment(), config.model_dir,
                             contact_limit_secs, train_spec.max_steps)
  rounds = last_exports.EvaluatorRounds(exports, watch)
  event_log.write('starting', record.END)
  stack.push(rounds.finish)
  stack.enter_context(_tf_internals.evaluator_asks(
      watch.goes_on, rounds.evaluate, watch.wait))
  return train_spec._replace(max_steps=None)


def _first_hooks(
    task: cluster_task.ClusterTask, config: tf.estimator.RunConfig,
    start_limit_secs: float, contact_limit_secs: float | None,
    still_limit_secs: float, stack: contextlib.ExitStack
) -> list[tf1.train.SessionRunHook]:
  """Returns the hooks that wait for tasks, to begin before the user's."""
  if not task.trains or task.is_alone:
    return []
  if not task.num_ps:
    hook = lost_peers.LostPeersHook(task, start_limit_secs, contact_limit_secs)
    stack.callback(hook.release)
    stack.push(hook.explain)
    stack.enter_context(_tf_internals.saving_without_summaries(os.path.join(
        config.model_dir,
        '' if task.is_chief else f'tmp_{task.job}_{task.index}')))
    return [hook] if task.is_chief else [  # The chief has its own.
        hook, checkpoint_guard_hook.CheckpointGuardHook(config)]
  hooks = [contact_hooks.KeepContactHook(
      config, contact_limit_secs, still_limit_secs),
           contact_hooks.AbsentWorkersHook(task)]
  if not task.is_chief:
    hooks.append(contact_hooks.WaitForChiefHook(config, start_limit_secs))
  return hooks


def _last_hooks(
    task: cluster_task.ClusterTask, estimator: tf.estimator.Estimator,
    max_steps: int | None, stop: shutdown_hooks.StopInOrderHook,
    report: shutdown_hooks.ReportFinishedHook,
) -> list[tf1.train.SessionRunHook]:
  """Returns the hooks that report steps, to begin after the user's."""
  config = estimator.config
  sinks = [events_hook.EventsSink(config, max_steps)]
  if task.trains:
    sinks.append(tensorboard_hook.TensorBoardSink(config, estimator.params))
  hooks = [telemetry_hook.TelemetryHook(*sinks), stop,
           *(process.fault_hooks() if task.trains else ())]
  if task.num_ps and task.trains:
    if not task.is_chief:
      hooks.append(report)
    hooks.append(shutdown_hooks.RefusedStepHook())
  return hooks


def _report(task: cluster_task.ClusterTask, config: tf.estimator.RunConfig,
            finish_limit_secs: float,
            hook: shutdown_hooks.ReportFinishedHook) -> None:
  """Reports the end of this task; the chief waits for the workers first."""
  waits.wait_or_report(task, finish_limit_secs)
  if not hook.has_reported:
    task_records.report_finished(task.cluster_spec, task.name)
  if task.is_chief:
    chief_report.write(config.model_dir, finish_limit_secs)


def _guarded(train_spec: tf.estimator.TrainSpec, config: tf.estimator.RunConfig,
             task: cluster_task.ClusterTask, others: waits.LastSteps,
             stack: contextlib.ExitStack) -> tf.estimator.TrainSpec:
  """Adds the chief's guard of the checkpoints."""
  stack.enter_context(model_dir_lock.locked(config.model_dir, task.name))
  chief_report.delete(config.model_dir)
  listeners = ()
  if others.awaits_others() or (
      config.train_distribute is not None and not task.is_alone):
    # TensorFlow drops the listeners of a strategy; others would miss the saves
    # of the guard.
    listeners = train_spec.saving_listeners
    train_spec = train_spec._replace(saving_listeners=())
  guard = checkpoint_guard_hook.CheckpointGuardHook(
      config, listeners=listeners, others=others)
  # TensorFlow reads the newest checkpoint before hooks begin.
  guard.choose_checkpoint()
  stack.enter_context(_tf_internals.first_of_ends(guard.before_end))
  return train_spec._replace(hooks=(guard, *train_spec.hooks))
