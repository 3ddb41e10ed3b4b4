# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decorator for a model_fn that trains copies, tied to a centre by a spring."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from tfplugin import types
from tfplugin.distribute import cluster_task
from tfplugin.distribute import graph_order
from tfplugin.distribute import per_graph
from tfplugin.distribute.elastic import elastic_exchange
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.elastic import elastic_start
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.distribute.elastic.overlap import separate_run
from tfplugin.distribute.elastic.values import first_values
from tfplugin.distribute.updates import optimizer_interception
from tfplugin.estimator import decorator_stack
from tfplugin.estimator import model_fn as model_fn_lib
from tfplugin.ops import elastic
from tfplugin.optimizers import elastic_average as elastic_average_lib
from tfplugin.optimizers import elastic_updates

tf1 = tf.compat.v1


def elastic_average(
    model_fn: types.ModelFn | None = None,
    *,
    options: elastic_settings.ElasticOptions | None = None,
    use_locking: bool = True,
    **settings: Any,
) -> types.ModelFn:
  """Returns a model_fn that trains with elastic averaging.

  For an Estimator in a cluster of parameter servers that is described by
  `TF_CONFIG`. The chief and each worker train a copy of the model. Every
  `communication_period` steps a copy and the centre, on the parameter servers,
  move towards each other. `tfplugin.ElasticAverageOptimizer` has the rule and
  the same numbers; see it. The model_fn stays as it is. It may have one plain
  `tf.compat.v1.train` optimizer or several, made anywhere, and use `minimize`
  or its own gradients. Variables may come from `get_variable`, layers of
  TensorFlow or Keras, or `tf.Variable`.

  Each variable of the model is, in TRAIN:
    * Trainable, or floating point that is not trained (by default): a copy on
      the worker, which the model computes with, and the centre on a parameter
      server under the variable's name. A copy starts from the centre whenever a
      worker gets a session.
    * Any other variable, and an untrained one that is made after an optimizer
      was applied: one variable on a parameter server.
    * An optimizer slot: on the worker; the chief's slots are saved, under the
      names that the bare optimizer gives them.

  `session.run(variable)` and any `Saver`, hook or scaffold of the program use
  the centre, so that checkpoints equal the plain model's. EVAL, PREDICT and
  exports run the model_fn on them, and training continues from them without the
  decorator. Warm starts, and the values that an `init_fn` assigns on the chief,
  set the centre.

  A step is a step of the session that applies gradients, by any number of
  optimizers. It ends with the exchange, after all work of the returned
  `train_op`. A step that only accumulates gradients, which a `tf.cond` of a
  later step applies, does not count.

  A model_fn that already has a `tfplugin.ElasticAverageOptimizer` with a getter
  is called as it is, and brings its own hooks and Saver.

  The penalty of `rho` is added when gradients are applied, after all changes of
  the model_fn, to each gradient that is not None. A model_fn that advances
  `global_step` itself counts local steps. So does an optimizer that assigns to
  the variables and the step itself, in a method `apply_gradients` of its own.

  Args:
    model_fn: As for `tf.estimator.Estimator`. Left out, a decorator is
      returned: `@elastic_average`, `@elastic_average(rho=0.1)`.
    options: `tfplugin.distribute.ElasticOptions`: all settings, in the place of
      keywords.
    use_locking: As for the optimizer. The centre, a resource variable, is
      updated under a lock in any case.
    **settings: Fields of `ElasticOptions`, e.g. `communication_period`.

  Returns:
    A model_fn with the same signature.

  Raises:
    TypeError: An argument has the wrong type. When called: the model_fn returns
      no EstimatorSpec.
    ValueError: An argument is out of range; the model_fn does not take
      `features`; a decorator below this one cannot be there. When called: no
      loss, no train_op, no v1 optimizer, a trained variable that the model_fn
      did not make, or workers without a parameter server.
    RuntimeError: When called: inside a tf.distribute strategy.

  Differences from tf.contrib: it had the optimizer only, whose checkpoints a
  plain Estimator could not read.

  Example:
    >>> import numpy as np
    >>> import tensorflow as tf
    >>> import tfplugin.estimator
    >>> tf1 = tf.compat.v1
    >>> @tfplugin.estimator.elastic_average(
    ...     communication_period=2, moving_rate=0.5)
    ... def model_fn(features, labels, mode):
    ...   w = tf1.get_variable('w', initializer=0.0)
    ...   optimizer = tf1.train.GradientDescentOptimizer(1.0)
    ...   loss = w * features
    ...   train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    ...   return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    >>> def input_fn():
    ...   return tf.data.Dataset.from_tensors(tf.constant(-1.0)).repeat(4)
    >>> estimator = tf.estimator.Estimator(model_fn)
    >>> _ = estimator.train(input_fn)
    >>> # Copy 2, centre 0 -> 1, 1; then 3, 1 -> 2, 2.
    >>> for name in estimator.get_variable_names():
    ...   print(name, estimator.get_variable_value(name))
    global_step 2
    w 2.0

  References:
    Zhang, Choromanska and LeCun. Deep learning with Elastic Averaging SGD.
    NeurIPS 2015. https://arxiv.org/abs/1412.6651
  """
  del use_locking  # A resource variable always is updated under one.
  return model_fn_lib.decorate_training(
      model_fn, functools.partial(
          _rule_of, settings=elastic_settings.ElasticSettings.of(
              elastic_average, options, settings)),
      decorator_stack.ELASTIC,
      'tfplugin.ElasticAverageOptimizer(opt, num_worker, getter)',
      alone_in=(tf.estimator.ModeKeys.TRAIN,))


def _rule_of(call: model_fn_lib.ModelFnCall,
             settings: elastic_settings.ElasticSettings,
             ) -> model_fn_lib.TrainingRule:
  """Returns the rule that gives the variables of one call a centre."""
  task = _task_of(call.config, settings.num_worker)
  scope = elastic_variables.CopyScope(settings, task)
  interception = optimizer_interception.Interception(
      functools.partial(elastic_updates.ElasticUpdates.of_scope, scope=scope),
      elastic_average_lib.ElasticAverageOptimizer)
  return model_fn_lib.TrainingRule(
      interception, functools.partial(
          _with_exchange, call=call, scope=scope, interception=interception),
      scope.scope())


def _with_exchange(spec: Any, call: model_fn_lib.ModelFnCall,
                   scope: elastic_variables.CopyScope,
                   interception: optimizer_interception.Interception) -> Any:
  """Returns the spec, with a step that ends with the exchange."""
  name, settings = decorator_stack.ELASTIC, scope.settings
  if interception.already_wrapped:
    _check_already_wrapped(interception, scope, settings)
    return spec
  if elastic.is_penalty(settings.rho):
    interception.audit.check(f'`{name}`', spec.train_op,
                             tf1.trainable_variables(),
                             elastic_exchange.AUDITED)
  elastic_start.refuse_centers(
      scope.pairs, settings, [spec.loss], [spec.train_op])
  scope.exchange.add(*scope.pairs)
  scope.exchange.inputs = graph_order.operations_of(tf.nest.flatten(
      [call.arguments.get('features'), call.arguments.get('labels')],
      expand_composites=True))
  train_op = scope.exchange.end_of_model_fn(
      [spec.train_op], {variable.op.name for variable in scope.state})
  first = _first_hooks(scope, scope.task)
  added = [*scope.exchange.variables(), *(
      v for optimizer in interception.wrappers for v in optimizer.variables())]
  return spec._replace(
      train_op=train_op, training_hooks=first_values.around(
          (*spec.training_hooks, *separate_run.hooks_of(scope.exchange.runs)),
          first),
      scaffold=spec.scaffold and _scaffold(spec.scaffold, scope, added))


def _first_hooks(scope: elastic_variables.CopyScope,
                 task: cluster_task.ClusterTask) -> list:
  """Returns the hook for values that are written before the first step."""
  signal = first_values.create_signal(
      scope.pairs[0].center.device, task.is_chief,
      is_awaited=not scope.settings.synchronous) if task.num_ps else None
  waits = signal is not None and scope.settings.synchronous
  return first_values.hooks_of(
      scope.pairs, scope.exchange.local_step.device, signal, task.is_chief,
      task.training_tasks[0] if waits else None)


def _task_of(config: Any, num_worker: int | None,
             ) -> cluster_task.ClusterTask:
  """Returns the task that builds the model, of a cluster that can do it."""
  task = cluster_task.from_config(config)
  if not task.is_alone and not task.num_ps:
    raise ValueError(
        '`elastic_average` needs a parameter server for the centre in a '
        f'cluster. Received: {task.cluster_spec.as_dict()}. Add the job `ps` '
        'to TF_CONFIG.')
  if num_worker is not None and num_worker < task.num_workers:
    raise ValueError(
        '`num_worker` must be at least the number of workers of the cluster, '
        f'the chief included. Received: {num_worker} with {task.num_workers} '
        'in the cluster. Leave it out.')
  return task


def _scaffold(own: tf1.train.Scaffold, scope: elastic_variables.CopyScope,
              added: list[tf.Variable]) -> tf1.train.Scaffold:
  """Returns the scaffold, which now also starts the added variables."""
  local = {v.ref() for v in tf1.local_variables()}
  return elastic_start.scaffold_for_centers(
      own, scope.pairs, **elastic_start.local_init_op(
          own, [*(v for v in added if v.ref() in local),
                *per_graph.current().unlisted]))


def _check_already_wrapped(interception: optimizer_interception.Interception,
                           scope: elastic_variables.CopyScope,
                           settings: elastic_settings.ElasticSettings) -> None:
  """Raises unless a model_fn's own elastic averaging covers all of it."""
  settings.check_unused(
      'of `elastic_average`, as the model_fn makes its own '
      'ElasticAverageOptimizer', 'Pass it to that optimizer')
  left_out = [*(f'the optimizer {wrapper.get_name()}'
                for wrapper in interception.wrappers),
              *(f'the variable {pair.center.op.name}' for pair in scope.pairs)]
  if left_out:
    raise ValueError(
        '`elastic_average` uses an ElasticAverageOptimizer of the model_fn '
        'only if it trains the whole model. Received: also '
        f'{", ".join(left_out)}. Make every variable with its getter, or leave '
        'the ElasticAverageOptimizer out.')
