# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Elastic averaging between the devices of one process."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute import per_graph
from tfplugin.distribute.elastic import elastic_exchange
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.distribute.variables import mirrored_variables
from tfplugin.distribute.variables import variable_arguments
from tfplugin.ops import elastic

tf1 = tf.compat.v1

Role = elastic_variables.Role


@dataclasses.dataclass
class ReplicasState:
  """The averaged variables of one graph, or of eager execution.

  Attributes:
    local_step: Counts the steps.
    copies: The distributed variables, each with a centre.
    has_gradients: Whether the step being built has applied gradients.
    is_exchanged: Whether the step being built has had its exchange.
  """

  local_step: tf.Variable
  copies: list = dataclasses.field(default_factory=list)
  has_gradients: bool = False
  is_exchanged: bool = False

  def __deepcopy__(self, memo):
    raise RuntimeError('A strategy is copied before it has variables.')


class ElasticReplicatedVariable(_tf_internals.MirroredVariable):
  """One copy per device, each of which goes its own way, and their centre.

  On a device it is that device's copy, also for assignments. Outside of all
  devices, for checkpoints, and where a Keras model evaluates or predicts, it is
  the centre; what is assigned there, all copies get, too.
  """

  @property
  def name(self) -> str:
    """The centre's name."""
    return self.center.name

  @property
  def op(self) -> tf.Operation:
    """The centre's op."""
    return self.center.op

  @property
  def _shared_name(self) -> str:
    # After which optimizers name their slots.
    return _name_of(self.center)

  @property
  def handle(self) -> tf.Tensor:
    """The handle of the copy on a device."""
    if self.distribute_strategy.extended.is_inferring:
      return self.center.handle
    return super().handle

  def value(self) -> tf.Tensor:
    """The copy on a device, the centre outside."""
    here = self._get()
    return here.value() if isinstance(here, tf.Variable) else here

  def _set_save_slice_info(self, save_slice_info):
    super()._set_save_slice_info(save_slice_info)
    _tf_internals.set_save_slice_info(self.center, save_slice_info)

  def _update_replica(self, update_fn, value, **kwargs):
    return update_fn(self._get_on_device_or_primary(), value, **kwargs)

  def _update_cross_replica(self, update_fn, value, **kwargs):
    # `Model.set_weights`, say: there is nothing left to average afterwards.
    updated = [update_fn(variable, _tf_internals.select_replica(0, value),
                         **kwargs)
               for variable in (self.center, self.local_center)
               if variable is not None]
    with tf.control_dependencies(updated):
      return super()._update_cross_replica(update_fn, value, **kwargs)

  def _get_replica(self, replica_id):
    if self.distribute_strategy.extended.is_inferring:
      return self.center
    return super()._get_replica(replica_id)

  def _get_cross_replica(self):
    return self.center.read_value()

  def _gather_saveables_for_checkpoint(self):

    def saveable(name=''):
      return _tf_internals.CopiesSaveable(
          (self.center, *self.values), self.center, name or _name_of(self))

    return {'VARIABLE_VALUE': saveable}


class ElasticReplicasExtended(mirrored_variables.MirroredInGraph,
                              _tf_internals.MirroredExtended):
  """A copy per device; all devices run the elastic rule at the same time.

  Attributes:
    is_inferring: Whether what runs on the devices evaluates or predicts.
  """

  def __init__(self, container_strategy, devices,
               settings: elastic_settings.ElasticSettings):
    """Takes the devices.

    Args:
      container_strategy: The strategy that this implements.
      devices: At least two devices of this process.
      settings: The rule's settings.
    """
    super().__init__(container_strategy, devices=devices,
                     cross_device_ops=tf.distribute.ReductionToOneDevice())
    self._settings = settings
    self._states = per_graph.PerGraph()
    self._eager_state = None
    self.is_inferring = False

  @property
  def num_worker(self) -> int:
    """The number of copies, for the default moving rate."""
    return self._settings.num_worker or len(self._devices)

  def _use_merge_call(self):
    # Otherwise optimizers would sum gradients before they come here.
    return True

  def _state(self) -> ReplicasState:
    if tf.executing_eagerly() or tf.inside_function():
      if self._eager_state is None:
        with tf.init_scope():
          self._eager_state = ReplicasState(_local_step())
      return self._eager_state
    graph = tf1.get_default_graph()
    if graph not in self._states:
      self._states[graph] = ReplicasState(_local_step())
    return self._states[graph]

  def _create_variable(self, next_creator, **kwargs):
    role = elastic_variables.role_of(kwargs, self._settings.statistics)
    if role is not Role.ELASTIC or variable_arguments.is_streaming(kwargs):
      return super()._create_variable(next_creator, **kwargs)
    trainable = elastic_variables.is_trainable(kwargs)
    with tf1.device('/cpu:0'):
      center = next_creator(**dict(
          kwargs, trainable=False,
          collections=[tf1.GraphKeys.GLOBAL_VARIABLES]))
    if not center.dtype.is_floating:
      raise TypeError(
          'A variable of a type that has no average must be created with its '
          f'`dtype`. Received: {center.name!r} of {center.dtype.name}. Pass '
          '`dtype` to `tf.Variable`.')

    def create_copy(_, **kwargs):
      del kwargs
      return _tf_internals.ResourceVariable(
          initial_value=center.read_value(), trainable=trainable,
          collections=[], name=f'{_name_of(center)}/local_copy')

    # One creator makes the copies, so that each starts from the centre.
    kwargs.update(
        collections=elastic_variables.localized(kwargs.get('collections')),
        trainable=trainable,
        synchronization=tf.VariableSynchronization.ON_WRITE,
        initial_value=None)
    with tf.init_scope(), tf1.name_scope(None):
      copies = super()._create_variable(
          lambda **kw: create_copy(None, **kw), **kwargs)
    copies.__class__ = ElasticReplicatedVariable
    _tf_internals.make_sliceable(copies)
    copies.center = center
    copies.local_center = None
    if self._settings.rho and trainable:
      with tf.init_scope(), tf1.name_scope(None), tf1.device('/cpu:0'):
        copies.local_center = elastic_variables.local_variable(
            center.read_value(), f'local_center_variable/{_name_of(center)}')
    self._state().copies.append(copies)
    return copies

  def _get_variable_creator_initial_value(self, replica_id, device, primary_var,
                                          **kwargs):
    if kwargs['initial_value'] is None:
      return None
    return super()._get_variable_creator_initial_value(
        replica_id, device, primary_var, **kwargs)

  def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
    if not all(isinstance(destination, ElasticReplicatedVariable)
               for _, destination in value_destination_pairs):
      return super()._batch_reduce_to(reduce_op, value_destination_pairs,
                                      options)
    state = self._state()
    state.has_gradients = True
    gradients = [self._penalized(value, copies)
                 for value, copies in value_destination_pairs]
    if self._settings.update_order != 'elastic_first' or state.is_exchanged:
      return gradients
    flat = [self._local_results(g) for g in gradients]
    with tf.control_dependencies(
        tf.nest.flatten(flat, expand_composites=True)):
      exchanged = self._exchange(state)
    return [_tf_internals.regroup(
        [elastic_exchange.after(g, [exchanged]) for g in per_replica])
            for per_replica in flat]

  def _penalized(self, value, copies):
    if copies.local_center is None:
      return value
    center = copies.local_center.read_value()
    return _tf_internals.regroup([
        elastic_exchange.add_penalty(g, v.read_value(), center,
                                     self._settings.rho)
        for g, v in zip(self._local_results(value), copies.values)])

  def _update(self, var, fn, args, kwargs, group):
    update = super()._update
    steps = tf1.get_collection(tf1.GraphKeys.GLOBAL_STEP)
    if self._settings.count_steps != 'communications' or not steps:
      return update(var, fn, args, kwargs, group)
    parameter_server_base.refuse_keras_update(
        fn, parameter_server_base.COUNTS_STEPS.format('ElasticAverageStrategy'),
        ", or pass count_steps='local'")
    if not any(step is var for step in steps):
      return update(var, fn, args, kwargs, group)

    def count():
      with tf.control_dependencies(tf.nest.flatten(
          update(var, fn, args, kwargs, group=False))):
        return tf.constant(True)

    counted = tf1.cond(self._is_due(self._state()), count,
                       lambda: tf.constant(False))
    with tf.control_dependencies([counted]):
      step = var.read_value()
    return step if group else (step,)

  def _call_for_each_replica(self, fn, args, kwargs):
    state = self._state()
    state.has_gradients = state.is_exchanged = False
    fn = _tf_internals.python_function_of(fn)
    self.is_inferring = _is_keras_inference(fn)
    try:
      result = super()._call_for_each_replica(fn, args, kwargs)
    finally:
      self.is_inferring = False
    if not state.has_gradients:
      return result
    if tf.executing_eagerly() or tf.inside_function():
      self._advance(state)
      return result
    if not hasattr(result, 'train_op'):
      raise RuntimeError(
          'In a v1 graph, the function that ElasticAverageStrategy calls on '
          'each device must return an EstimatorSpec. '
          f'Received: {type(result).__name__}. Call `strategy.run` inside a '
          '`tf.function` instead.')
    done = tf.nest.flatten(self._local_results(result.train_op))
    # Estimator reports the sum of the losses that it is given.
    losses = self._local_results(result.loss)
    loss = _tf_internals.regroup(tuple(x / len(losses) for x in losses))
    with tf.control_dependencies(done):
      return parameter_server_base.with_fields(
          result, loss=loss, train_op=self._advance(state))

  def _advance(self, state: ReplicasState):
    exchanged = self._exchange(state)
    with tf.control_dependencies([] if tf.executing_eagerly()
                                 else [exchanged]):
      return state.local_step.assign_add(1, read_value=False)

  def _is_due(self, state: ReplicasState) -> tf.Tensor:
    period = self._settings.communication_period
    return tf.equal((state.local_step.read_value() + 1) % period, 0)

  def _exchange(self, state: ReplicasState):
    """Runs the rule for all devices, if it is due and not done yet."""
    if state.is_exchanged:
      return tf.constant(True)
    state.is_exchanged = True
    rate = self._settings.rate(self.num_worker)

    def communicate():
      moves = []
      for copies in state.copies:
        moves += _exchange_one(copies, rate)
      with tf.control_dependencies([m for m in moves if m is not None]):
        return tf.constant(True)

    return tf.cond(self._is_due(state), communicate,
                   lambda: tf.constant(False))


def _exchange_one(copies: ElasticReplicatedVariable, rate: float) -> list:
  center = copies.center.read_value()
  differences = []
  for copy in copies.values:
    with tf1.device(copy.device):
      differences.append(
          elastic.elastic_difference(copy.read_value(), center, rate))
  # All differences are those of the values before any of them moves.
  with tf.control_dependencies(differences):
    moves = [copy.assign_sub(difference, read_value=False)
             for copy, difference in zip(copies.values, differences)]
    moves.append(copies.center.assign_add(
        tf.add_n(differences), read_value=False))
    if copies.local_center is not None:
      moves.append(copies.local_center.assign(center, read_value=False))
  return moves


def _is_keras_inference(fn) -> bool:
  """Whether `fn` is what `Model.evaluate` or `Model.predict` runs."""
  makers = ('make_test_function', 'make_predict_function')
  return any(part in makers
             for part in getattr(fn, '__qualname__', '').split('.'))


def _local_step() -> tf.Variable:
  with tf1.name_scope(None), tf1.device('/cpu:0'):
    return elastic_variables.local_variable(
        tf.zeros([], tf.int64), 'local_step')


def _name_of(variable: tf.Variable) -> str:
  return variable.name.split(':')[0]
