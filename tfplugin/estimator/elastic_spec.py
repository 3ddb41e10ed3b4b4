# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What elastic averaging needs of an EstimatorSpec, merged with what it has."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import optimizer_interception
from tfplugin.distribute import prompt_start
from tfplugin.estimator import stale_counter_saver
from tfplugin.estimator import training_spec
from tfplugin.hooks import elastic_checkpoint_hook
from tfplugin.optimizers import elastic_average
from tfplugin.optimizers import elastic_custom_getter
from tfplugin.optimizers import elastic_saver

tf1 = tf.compat.v1

_Getter = elastic_custom_getter.ElasticAverageCustomGetter


@dataclasses.dataclass(frozen=True)
class Worker:
  """The process that builds the model, among those that train.

  Attributes:
    num_worker: How many there are, the chief included.
    index: Of this one, in [0, num_worker); the chief's is 0.
    device: Its device; empty for the process of the session.
    is_chief: Whether it saves and initialises.
  """

  num_worker: int
  index: int
  device: str
  is_chief: bool


def worker_of(config: Any, num_worker: Optional[int]) -> Worker:
  """Reads from a `tf.estimator.RunConfig` which worker this is.

  Args:
    config: The RunConfig; None is a single process.
    num_worker: How many workers the user says there are, or None.

  Raises:
    ValueError: There are workers and no parameter server, or more workers than
      the user says.
  """
  if config is None or not config.cluster_spec.as_dict():
    return Worker(num_worker or 1, 0, '', True)
  if not config.num_ps_replicas:
    raise ValueError(
        '`elastic_average` needs a parameter server for the centre where there '
        f'is a cluster. Received: {config.cluster_spec.as_dict()}. Add the job '
        '`ps` to TF_CONFIG.')
  if num_worker is not None and num_worker < config.num_worker_replicas:
    raise ValueError(
        '`num_worker` must be at least the number of workers of the cluster, '
        f'the chief included. Received: {num_worker} with '
        f'{config.num_worker_replicas} in the cluster. Leave it out.')
  return Worker(
      num_worker or config.num_worker_replicas, config.global_id_in_cluster,
      f'/job:{config.task_type}/task:{config.task_id}', config.is_chief)


def check_honoured(interception: optimizer_interception.Interception,
                   getter: _Getter) -> None:
  """Raises if a model_fn has elastic averaging itself, but not for all of it.

  Args:
    interception: What was active around the model_fn.
    getter: Made what the model_fn's own getter did not make.

  Raises:
    ValueError: Another optimizer, or a variable, is without.
  """
  left_out = [*(f'the optimizer {wrapper.get_name()}'
                for wrapper in interception.wrappers),
              *(f'the variable {pair.local.op.name}' for pair in getter.pairs)]
  if left_out:
    raise ValueError(
        '`elastic_average` honours an ElasticAverageOptimizer of the model_fn '
        'if that trains the whole model. Received: one beside '
        f'{", ".join(left_out)}. Make every variable with its getter, or leave '
        'the ElasticAverageOptimizer out.')


class _Optimizers:
  """Several optimizers of one model, as the checkpoint hook takes one."""

  def __init__(self, optimizers: Sequence):
    self._optimizers = optimizers

  def optimizer_state(self) -> dict:
    """Returns the inner optimizers' variables by their names in checkpoints."""
    state = {}
    for optimizer in self._optimizers:
      state.update(optimizer.optimizer_state())
    return state

  def local_state(self) -> list[tf.Variable]:
    """Returns all variables that the optimizers made."""
    return [variable for optimizer in self._optimizers
            for variable in optimizer.variables()]

  def variables(self) -> list[tf.Variable]:
    """Returns the inner optimizers' variables."""
    return [variable for value in self.optimizer_state().values()
            for variable in (value if isinstance(value, list) else [value])]


def complete(
    spec: Any, config: Any, worker: Worker, getter: _Getter,
    optimizers: Sequence[elastic_average.ElasticAverageOptimizer]) -> Any:
  """Returns `spec` with hooks and scaffold for elastic averaging.

  Args:
    spec: What the model_fn returned; it is not changed.
    config: The RunConfig, or None.
    worker: This process.
    getter: Made the model's variables.
    optimizers: Those of the model, wrapped.

  Raises:
    ValueError: A scaffold or a hook has a Saver that cannot be given the
      centre.
  """
  _check_hooks(spec)
  together = _Optimizers(optimizers)
  saver = _saver(spec.scaffold, config, getter, together)
  if not worker.is_chief:
    prompt_start.add_ready_op()
  starts = [optimizer.make_session_run_hook(worker.is_chief, worker.index)
            for optimizer in optimizers]
  chief_hooks = list(spec.training_chief_hooks or ())
  if config is not None and config.model_dir and (
      config.save_checkpoints_steps or config.save_checkpoints_secs):
    chief_hooks.append(elastic_checkpoint_hook.ElasticCheckpointHook(
        together, config.model_dir, saver,
        save_secs=config.save_checkpoints_secs,
        save_steps=config.save_checkpoints_steps))
  return spec._replace(
      scaffold=_scaffold(spec.scaffold, saver, getter, together),
      training_hooks=(*starts, *(spec.training_hooks or ())),
      training_chief_hooks=tuple(chief_hooks))


def _check_hooks(spec: Any) -> None:
  hooks = (*(spec.training_hooks or ()), *(spec.training_chief_hooks or ()))
  for hook in hooks:
    if isinstance(hook, tf1.train.CheckpointSaverHook):
      raise ValueError(
          'A model_fn below `elastic_average` must leave checkpoints to the '
          f'RunConfig. Received: the hook {hook!r}, which would save the copy '
          'of one worker. Set `save_checkpoints_steps` or '
          '`save_checkpoints_secs` there.')


def _saver(scaffold: Optional[tf1.train.Scaffold], config: Any,
           getter: _Getter, together: _Optimizers) -> tf1.train.Saver:
  """Returns a Saver of the centre, like the one of `scaffold` if it has one."""
  own = scaffold.saver if scaffold is not None else None
  if own is None:
    own = next(iter(tf1.get_collection(tf1.GraphKeys.SAVERS)), None)
  everything = elastic_saver.all_variables(getter, together.variables())
  if own is None:
    arguments = dict(sharded=True, save_relative_paths=True)
    if config is not None:
      arguments.update(
          max_to_keep=config.keep_checkpoint_max,
          keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours)
    return tf1.train.Saver(
        elastic_saver.swapped(getter, everything), **arguments)
  if isinstance(own, stale_counter_saver.StaleCounterSaver):
    return own.saving(elastic_saver.swapped(getter, everything))
  if type(own) is not tf1.train.Saver:
    raise ValueError(
        'The scaffold of a model_fn below `elastic_average` may hold a '
        '`tf.compat.v1.train.Saver`, which is made anew for the centre. '
        f'Received: {own!r}. Use that class, or leave the Saver out.')
  var_list, arguments = _tf_internals.arguments_of_saver(own)
  if var_list is None or _is_default(var_list):
    var_list = everything
  elif isinstance(var_list, (list, tuple)):
    # Chosen from the global variables, where the centre stands for the model's.
    copies = {pair.center.ref(): pair.local for pair in getter.pairs}
    var_list = [copies.get(item.ref(), item) if isinstance(item, tf.Variable)
                else item for item in var_list]
  return tf1.train.Saver(
      elastic_saver.swapped(getter, var_list), **arguments)


def _is_default(var_list: Any) -> bool:
  """Whether a Saver that was given nothing found these: all there are."""
  return isinstance(var_list, (list, tuple)) and [
      v.ref() for v in var_list if isinstance(v, tf.Variable)] == [
          v.ref() for v in tf1.global_variables()]


def _scaffold(own: Optional[tf1.train.Scaffold], saver: tf1.train.Saver,
              getter: _Getter, together: _Optimizers) -> tf1.train.Scaffold:
  """Returns a scaffold with what `own` has, but `saver`."""
  if own is None:
    return tf1.train.Scaffold(saver=saver)
  merged = training_spec.local_init_op(
      own, [*(pair.local for pair in getter.pairs), *together.local_state()])
  if own.init_fn is not None or own.init_op is not None:
    merged['init_fn'] = _init_fn(own.init_fn, getter)
  return tf1.train.Scaffold(saver=saver, copy_from_scaffold=own, **merged)


def _init_fn(own: Optional[Callable], getter: _Getter) -> Callable:
  """Returns an `init_fn` that hands on to the centre what `own` sets.

  It runs before the copies are initialised: those that are, the model_fn set.
  """
  with tf1.control_dependencies(None), tf1.name_scope('elastic_init_fn'):
    is_set = tf.stack([tf1.is_variable_initialized(pair.local)
                       for pair in getter.pairs])
    to_center = [
        tf.group(pair.center.assign(pair.local.read_value(), read_value=False))
        for pair in getter.pairs]

  def init_fn(scaffold, session):
    del scaffold
    if own is not None:
      own(session)
    done = session.run(is_set)
    session.run([op for op, was_set in zip(to_center, done) if was_set])

  return init_fn
