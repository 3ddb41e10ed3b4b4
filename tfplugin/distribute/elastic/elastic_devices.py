# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Elastic averaging between the devices of one process."""

from __future__ import annotations

import contextlib
import contextvars
import functools

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.elastic import elastic_start
from tfplugin.distribute.elastic import elastic_steps
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.distribute.variables import mirrored_variables

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
    return self._primary.center

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

  def _update_replica(self, update_fn, value, **kwargs):
    return update_fn(self._get_on_device_or_primary(), value, **kwargs)

  def _update_cross_replica(self, update_fn, value, **kwargs):
    with self.distribute_strategy.extended.stepping(0):
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
          (self.center, *self.values), self.center,
          name or self.name.split(':')[0])

    return {_tf_internals.VARIABLE_VALUE_KEY: saveable}


class ElasticDevicesExtended(elastic_steps.ElasticSteps,
                             mirrored_variables.MirroredInGraph,
                             _tf_internals.MirroredExtended):
  """A copy per device; all devices run the elastic rule at the same time."""

  # What the strategy that has this asks: it needs no session, and each device
  # trains on a loss of its own.
  is_replicated = True

  def __init__(self, container_strategy,
               settings: elastic_settings.ElasticSettings, devices):
    """Takes the devices.

    Args:
      container_strategy: The strategy that this implements.
      settings: The rule's settings.
      devices: At least two devices of this process.

    Raises:
      ValueError: The settings make no sense within a process.
    """
    if settings.sparse_exchange:
      raise ValueError(
          '`sparse_exchange` must be False between the devices of one process, '
          'where no network is saved. Received: True.')
    super().__init__(container_strategy, settings, devices=devices,
                     cross_device_ops=tf.distribute.ReductionToOneDevice())

  @property
  def _num_copies(self) -> int:
    return len(self._devices)

  def _use_merge_call(self):
    # Otherwise optimizers would sum gradients before they come here.
    return True

  def _create_local_step(self) -> tf.Variable:
    return elastic_start.create_local_step()

  def _on_server(self):
    return tf1.device('/cpu:0')

  _on_worker = _on_server

  def _without_average(self, variable):
    raise TypeError(
        'A variable of a type that has no average must be created with its '
        f'`dtype`. Received: {variable.name!r} of {variable.dtype.name}. Pass '
        '`dtype` to `tf.Variable`.')

  def _create_copies(self, create_copy, **kwargs):
    kwargs.update(synchronization=tf.VariableSynchronization.ON_WRITE)
    with tf1.name_scope(None):
      # As the class behind `ElasticSteps` does, which called this one.
      copies = super(elastic_steps.ElasticSteps, self)._create_variable(
          create_copy, **kwargs)
    copies.__class__ = ElasticReplicatedVariable
    _tf_internals.make_sliceable(copies)
    return copies

  def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
    if not parameter_server_base.updates_variables(value_destination_pairs):
      _check_is_shared([pair[1] for pair in value_destination_pairs])
      self._check_is_together()
      return super()._batch_reduce_to(reduce_op, value_destination_pairs,
                                      options)
    flat = []
    for value, destination in value_destination_pairs:
      values = self._values_of(value)
      copies = self._values_of(_tf_internals.own_variable(destination))
      if self.only is not None:
        copies = [copies[self.only]]
      # A gradient may be one and the same for all devices.
      flat += zip(values * (len(copies) // len(values)), copies)
    gradients = iter([g for g, _ in self._exchange().adjusted(
        flat, self._settings.rho)])
    count = len(flat) // len(value_destination_pairs)
    return [_tf_internals.regroup([next(gradients) for _ in range(count)])
            for _ in value_destination_pairs]

  def _reduce_to(self, reduce_op, value, destinations, options):
    self._check_is_together()
    return super()._reduce_to(reduce_op, value, destinations, options)

  @contextlib.contextmanager
  def _alone(self, number):
    self.only = number
    try:
      yield
    finally:
      self.only = None

  def _check_is_together(self):
    if self.only is not None:
      raise RuntimeError(
          'Devices cannot wait for each other inside a `tf.cond` or a loop of '
          'one of them. Received: a reduction, or a call for each replica, '
          'there; optimizers and assignments may be. Make it outside, or put '
          'the condition around all devices, by `merge_call` of the replica '
          'context, as MixedPrecisionLossScaleOptimizer does.')

  def _update(self, var, fn, args, kwargs, group):
    if self._depth or not isinstance(var, ElasticReplicatedVariable):
      return super()._update(var, fn, args, kwargs, group)
    # `Model.set_weights`, say: there is nothing left to average afterwards.
    pair = _tf_internals.own_variable(var).pair
    updated = [fn(variable, *_tf_internals.select_replica(0, args),
                  **_tf_internals.select_replica(0, kwargs))
               for variable in (pair.center, pair.local_center)
               if variable is not None]
    with tf.control_dependencies([u for u in updated if u is not None]):
      return super()._update(var, fn, args, kwargs, group)

  def _call_for_each_replica(self, fn, args, kwargs):
    self._check_is_together()
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


def _check_is_shared(destinations) -> None:
  """Raises if the devices have one Keras cast of a variable each."""
  for destination in destinations:
    first = _tf_internals.select_replica(0, destination)
    if isinstance(first, tf.Variable):
      raise ValueError(
          '`var_list` must hold variables that the devices share. Received: '
          f"Keras' casts of {first.name!r}, one for each device. Leave "
          '`var_list` out, or make the layer outside of the devices.')


def _with_centers(fn):
  """`fn` for a device that evaluates or predicts, which is for the centre."""

  @functools.wraps(fn)
  def run(*args, **kwargs):
    with contextlib.ExitStack() as stack:
      stack.callback(_reads_centers.reset, _reads_centers.set(True))
      return fn(*args, **kwargs)

  return run
