# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Base of the asynchronous parameter-server strategies, and the plain one."""

from __future__ import annotations

import contextlib
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import branching
from tfplugin.distribute import cluster_config
from tfplugin.distribute import cluster_task
from tfplugin.distribute import graph_order
from tfplugin.distribute import per_graph
from tfplugin.distribute import refusals
from tfplugin.distribute import untuned_inputs
from tfplugin.distribute.packed import packed_steps
from tfplugin.distribute.sessions import prompt_start

tf1 = tf.compat.v1


class ParameterServerExtended(packed_steps.PackedSteps,
                              untuned_inputs.UntunedInputs,
                              _tf_internals.ParameterServerStrategyExtended):
  """Between-graph parameter servers, with a hook at the end of the step.

  Local variables, for example of metrics, are made on the worker. TensorFlow
  would put them on a parameter server, where all workers share them.

  Every assignment to the global step, by an optimizer or by the model_fn
  itself, calls `_update`.

  Small variables and gradients travel in one message each way.

  An optimizer may also run in a branch or a loop.
  """

  @property
  def task(self) -> cluster_task.ClusterTask:
    """The task of this process, in the cluster of the resolver."""
    if not self._cluster_spec:
      return cluster_task.ClusterTask()
    return cluster_task.ClusterTask(
        self._cluster_spec, self._task_type, self._task_id)

  def _create_variable(self, next_creator, **kwargs):
    if _tf_internals.is_global_step(kwargs):
      return self._create_global_step(next_creator, **kwargs)
    if not _tf_internals.is_local(kwargs):
      variable = super()._create_variable(next_creator, **kwargs)
      if type(variable) is _tf_internals.AggregatingVariable:
        variable.__class__ = _tf_internals.StartedVariable
      return variable
    with self._on_worker():
      return self._create_var_creator(next_creator, **kwargs)(**kwargs)

  def _create_global_step(self, next_creator, **kwargs):
    """Wraps the step, as TensorFlow does where there are several devices."""
    collections, kwargs['collections'] = kwargs['collections'], []
    step = _tf_internals.StartedVariable(
        self._container_strategy(),
        unwrapped(super()._create_variable(next_creator, **kwargs)),
        tf.VariableAggregation.ONLY_FIRST_REPLICA)
    for key in collections:
      tf1.add_to_collection(key, step)
    return step

  def _on_worker(self):
    """Places ops on this worker's device, regardless of outer device scopes."""
    return self._on(self.own_device)

  @contextlib.contextmanager
  def _on(self, device):
    graph = tf1.get_default_graph()
    with graph.colocate_with(None, ignore_existing=True), tf1.device(device):
      yield

  def _call_for_each_replica(self, fn, args, kwargs):
    if not tf.executing_eagerly():
      fn = branching.with_merges_in_branches(self._container_strategy(), fn)
    result = super()._call_for_each_replica(fn, args, kwargs)
    # Estimator calls once with the model_fn, then for parts of the scaffold.
    if hasattr(result, 'train_op'):
      if result.train_op is not None:
        result = with_started_scaffolds(
            self._container_strategy(), self._finish_step(result))
      if self._in_multi_worker_mode() and not self.experimental_should_init:
        prompt_start.add_ready_op(self.task.training_tasks[0])
    return result

  def _finish_step(self, spec):
    """Returns `spec` with the strategy's own ops after its `train_op`."""
    return spec


class ParameterServerStrategy(refusals.NoKerasSessions,
                              tf1.distribute.Strategy):
  """A strategy that builds graphs for a v1 session, and refuses eager mode."""

  # The remedy in eager mode, for the message.
  _eager_remedy = ('for `Model.fit` and tf.function use '
                   '`tf.distribute.MirroredStrategy`')

  @refusals.on_instance
  def scope(self):
    """Enters as `tf.distribute.Strategy.scope`; raises in eager mode."""
    self._refuse_eager()
    return super().scope()

  def run(self, fn, args=(), kwargs=None, options=None):
    """Runs `fn` as `tf.distribute.Strategy.run`; raises in eager mode."""
    self._refuse_eager()
    return super().run(fn, args=args, kwargs=kwargs, options=options)

  def experimental_distribute_dataset(self, dataset, options=None):
    """Distributes as `tf.distribute.Strategy`; raises in eager mode."""
    self._refuse_eager()
    return super().experimental_distribute_dataset(dataset, options)

  def distribute_datasets_from_function(self, dataset_fn, options=None):
    """Distributes as `tf.distribute.Strategy`; raises in eager mode."""
    self._refuse_eager()
    return super().distribute_datasets_from_function(dataset_fn, options)

  def _refuse_eager(self) -> None:
    refuse_eager(self.described_as, self._eager_remedy)


class PackedParameterServerStrategy(ParameterServerStrategy):
  """Plain parameter-server training that packs small values into messages.

  Trains as `tf.compat.v1.distribute.experimental.ParameterServerStrategy` does,
  with the same values, variables and checkpoints. The variables of up to 32 KiB
  that a worker reads from a server share one message for each type, and so do
  their gradients. The lookups of embedding tables share two messages, for ids
  and for rows, and so do their gradients. TensorFlow sends each tensor as a
  message of its own. It still does so with larger variables and rows, and with
  reads inside branches, loops and functions. The other strategies of tfplugin
  on parameter servers pack, too; this one does nothing else.

  In a cluster, also pass `RunConfig(experimental_max_worker_delay_secs=0)`. By
  default TensorFlow delays worker k by 5 s * (k + 1).

  Args:
    cluster_resolver: A `tf.distribute.cluster_resolver.ClusterResolver`; None
      reads `TF_CONFIG`.

  Raises:
    TypeError: `cluster_resolver` is of another type.
    ValueError: The cluster has no `ps`, or `TF_CONFIG` is wrong.

  Example:
  >>> import tensorflow as tf
  >>> import tfplugin.distribute
  >>> strategy = tfplugin.distribute.PackedParameterServerStrategy()
  >>> config = tf.estimator.RunConfig(train_distribute=strategy)
  """

  def __init__(
      self,
      cluster_resolver: (
          tf.distribute.cluster_resolver.ClusterResolver | None) = None):
    super().__init__(ParameterServerExtended(
        self, resolver_or_default(cluster_resolver)))


def refuse_eager(name: str, remedy: str) -> None:
  """Raises RuntimeError in eager mode; `remedy` is a use that works there."""
  if tf.executing_eagerly():
    raise RuntimeError(
        f'{name} works in a graph: parameter servers without a coordinator '
        'need a session. Received: a call in eager mode. Use it through an '
        'Estimator, `RunConfig(train_distribute=...)`, or build inside '
        f'`with tf.Graph().as_default()`; {remedy}.')


def unwrapped(variable: tf.Variable) -> tf.Variable:
  """Returns the variable inside the wrapper that several devices share.

  Keras' cast of a variable is unwrapped, too.
  """
  variable = _tf_internals.own_variable(variable)
  if isinstance(variable, _tf_internals.AggregatingVariable):
    return variable.get()
  return variable


def global_step() -> tf.Variable | None:
  """Returns the global step of the graph, without a wrapper, or None."""
  return unwrapped(tf1.train.get_global_step())


def with_fields(spec, **changed: Any):
  """Returns an EstimatorSpec with other values of some fields.

  The spec's `_replace` refuses the values of several devices.
  """
  fields = dict(zip(spec._fields, spec), **changed)
  return type(spec)._make(fields[name] for name in spec._fields)


def with_started_scaffolds(strategy: tf.distribute.Strategy, spec):
  """Returns `spec` with a scaffold that starts the strategy's own variables."""
  if not hasattr(spec, 'scaffold'):
    return spec
  return with_fields(spec, scaffold=_tf_internals.regroup(tuple(
      map(started, strategy.experimental_local_results(spec.scaffold)))))


def started(scaffold: tf1.train.Scaffold | None,
            ) -> tf1.train.Scaffold | None:
  """Returns `scaffold`, which now starts all local variables.

  A program's own `local_init_op` does not initialise variables that a strategy
  adds.
  """
  if scaffold is None or scaffold.local_init_op is None:
    return scaffold
  known = graph_order.upstream([scaffold.local_init_op])
  missing = [v for v in (*tf1.local_variables(),
                         *per_graph.current().unlisted)
             if v.initializer not in known]
  return _tf_internals.changed_scaffold(scaffold, local_init_op=tf.group(
      scaffold.local_init_op, tf1.variables_initializer(missing)))


def updates_variables(value_destination_pairs) -> bool:
  """Returns whether a `batch_reduce_to` is an optimizer's, towards variables.

  A model may also reduce its own tensors, towards tensors.
  """
  return all(isinstance(destination, tf.Variable)
             for _, destination in value_destination_pairs)


def resolver_or_default(
    cluster_resolver: tf.distribute.cluster_resolver.ClusterResolver | None,
) -> tf.distribute.cluster_resolver.ClusterResolver:
  """Returns `cluster_resolver`, checked; for None, the one of `TF_CONFIG`.

  Raises TypeError for another type, and ValueError if `TF_CONFIG` is wrong or
  the cluster has no `ps`.
  """
  resolver_class = tf.distribute.cluster_resolver.ClusterResolver
  if cluster_resolver is None:
    cluster_resolver = cluster_config.resolver()
  elif not isinstance(cluster_resolver, resolver_class):
    raise TypeError(
        '`cluster_resolver` must be a '
        '`tf.distribute.cluster_resolver.ClusterResolver` or None. '
        f'Received: {cluster_resolver!r}. None reads TF_CONFIG.')
  cluster = cluster_resolver.cluster_spec()
  if cluster and 'ps' not in cluster.jobs:
    task = cluster_task.from_resolver(cluster_resolver)
    if task.job == 'evaluator' and task.num_workers == 1:
      # The chief is the only training task; this evaluates without a strategy.
      return tf.distribute.cluster_resolver.SimpleClusterResolver(
          tf.train.ClusterSpec({}))
    raise ValueError(
        'The cluster, of `cluster_resolver` or `TF_CONFIG`, must have a `ps`, '
        f'where variables are. Received: the jobs {", ".join(cluster.jobs)}. '
        'Add a `ps`, or use `tfplugin.distribute.CrossShardStrategy`.')
  return cluster_resolver
