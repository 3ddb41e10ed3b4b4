# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Elastic averaging between the devices of one process."""

from __future__ import annotations

import contextvars
import functools
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute import per_graph
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.elastic import elastic_start
from tfplugin.distribute.elastic import elastic_steps
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.distribute.variables import mirrored_variables
from tfplugin.distribute.variables import variable_arguments

tf1 = tf.compat.v1

Role = elastic_variables.Role

# Whether a device that runs computes with the centres instead of its copies.
_reads_centers = contextvars.ContextVar('_reads_centers', default=False)


class ElasticReplicatedVariable(_tf_internals.MirroredVariable):
  """One copy per device, each of which goes its own way, and their centre.

  On a device it is that device's copy, also for assignments. Outside of all
  devices, for checkpoints, and where a Keras model evaluates or predicts, it is
  the centre; what is assigned there, all copies get, too.

  Attributes:
    pair: The copies and their centre.
  """

  @property
  def center(self) -> tf.Variable:
    """The variable that is averaged and saved."""
    return self.pair.center

  @property
  def local_center(self) -> Optional[tf.Variable]:
    """The centre as the devices saw it last; None without a penalty."""
    return self.pair.local_center

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
    if _reads_centers.get():
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
    if _reads_centers.get():
      return self.center
    return super()._get_replica(replica_id)

  def _get_cross_replica(self):
    return self.center.read_value()

  def _gather_saveables_for_checkpoint(self):

    def saveable(name=''):
      return _tf_internals.CopiesSaveable(
          (self.center, *self.values), self.center, name or _name_of(self))

    return {_tf_internals.VARIABLE_VALUE_KEY: saveable}


class ElasticDevicesExtended(mirrored_variables.MirroredInGraph,
                             elastic_steps.ElasticSteps,
                             _tf_internals.MirroredExtended):
  """A copy per device; all devices run the elastic rule at the same time."""

  # What the strategy that has this asks: it needs no session, and each device
  # trains on a loss of its own.
  is_replicated = True

  def __init__(self, container_strategy, devices,
               settings: elastic_settings.ElasticSettings):
    """Takes the devices.

    Args:
      container_strategy: The strategy that this implements.
      devices: At least two devices of this process.
      settings: The rule's settings.

    Raises:
      ValueError: The settings make no sense within a process.
    """
    if settings.sparse_exchange:
      raise ValueError(
          '`sparse_exchange` must be False between the devices of one process, '
          'where no network is saved. Received: True.')
    super().__init__(container_strategy, devices=devices,
                     cross_device_ops=tf.distribute.ReductionToOneDevice())
    self._settings = settings
    self._exchanges = per_graph.PerGraph()

  @property
  def num_worker(self) -> int:
    """The number of copies, for the default moving rate."""
    return self._settings.num_worker or len(self._devices)

  def _use_merge_call(self):
    # Otherwise optimizers would sum gradients before they come here.
    return True

  def _create_local_step(self) -> tf.Variable:
    return elastic_start.create_local_step('/cpu:0')

  def _create_variable(self, next_creator, **kwargs):
    role = elastic_variables.role_of(kwargs, self._settings.statistics)
    if role is not Role.ELASTIC or variable_arguments.is_streaming(kwargs):
      return super()._create_variable(next_creator, **kwargs)
    trainable = variable_arguments.is_trainable(kwargs)
    with tf1.device('/cpu:0'):
      center = elastic_variables.center_of(next_creator, kwargs)
    if not center.dtype.is_floating:
      raise TypeError(
          'A variable of a type that has no average must be created with its '
          f'`dtype`. Received: {center.name!r} of {center.dtype.name}. Pass '
          '`dtype` to `tf.Variable`.')

    def create_copy(**kwargs):
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
      copies = super()._create_variable(create_copy, **kwargs)
    copies.__class__ = ElasticReplicatedVariable
    _tf_internals.make_sliceable(copies)
    copies.pair = elastic_pairs.Pair(copies.values, center, trainable)
    if self._settings.rho and trainable:
      with tf.init_scope(), tf1.device('/cpu:0'):
        copies.pair.local_center = elastic_variables.local_center(center)
    self._exchange().add(copies.pair)
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
    flat = []
    for value, destination in value_destination_pairs:
      values = self._local_results(value)
      # A gradient may be one and the same for all devices.
      count = len(destination.values) // len(values)
      flat += zip(values * count, destination.values)
    gradients = iter([g for g, _ in self._exchange().adjusted(flat)])
    return [_tf_internals.regroup(
        [next(gradients) for _ in destination.values])
            for _, destination in value_destination_pairs]

  def _call_for_each_replica(self, fn, args, kwargs):
    fn = _tf_internals.python_function_of(fn)
    if _tf_internals.is_keras_inference(fn):
      fn = _with_centers(fn)
    return super()._call_for_each_replica(fn, args, kwargs)

  def _end_step(self, exchange, result):
    result = super()._end_step(exchange, result)
    if not hasattr(result, 'train_op'):
      return result
    # Estimator reports the sum of the losses that it is given.
    losses = self._local_results(result.loss)
    return parameter_server_base.with_fields(
        result, loss=_tf_internals.regroup(
            tuple(loss / len(losses) for loss in losses)))

  def _read_after(self, var, done):
    with tf.control_dependencies([done]):
      return var.read_value()


def _with_centers(fn):
  """`fn` for a device that evaluates or predicts, which is for the centre."""

  @functools.wraps(fn)
  def run(*args, **kwargs):
    token = _reads_centers.set(True)
    try:
      return fn(*args, **kwargs)
    finally:
      _reads_centers.reset(token)

  return run


def _name_of(variable: tf.Variable) -> str:
  return variable.name.split(':')[0]
