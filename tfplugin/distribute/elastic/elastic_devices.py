# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Elastic averaging between the devices of one process."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute import per_graph
from tfplugin.distribute import untuned_inputs
from tfplugin.distribute.elastic import elastic_start
from tfplugin.distribute.elastic import elastic_steps
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.distribute.updates import intercepted_updates
from tfplugin.distribute.variables import mirrored_variables

tf1 = tf.compat.v1

Role = elastic_variables.Role

# Whether replicas compute with the centres instead of their copies.
_reads_centers = per_graph.ContextValue(False)


class ElasticReplicatedVariable(_tf_internals.MirroredVariable):
  """One copy of a variable per device, and their centre.

  On a device it reads and assigns that device's copy. Outside of all devices,
  for checkpoints, and where a Keras model evaluates or predicts, it is the
  centre. An assignment outside writes the centre and all copies.

  Attributes:
    pair: The copies and their centre.
  """

  @property
  def center(self) -> tf.Variable:
    """The variable that is averaged and saved."""
    return self._primary.center

  @property
  def handle(self) -> tf.Tensor:
    """The handle of the current device's copy; in inference, of the centre."""
    if _reads_centers.get():
      return self.center.handle
    return super().handle

  def value(self) -> tf.Tensor:
    """Returns the copy on a device, the centre outside."""
    here = self._get()
    return here.value() if isinstance(here, tf.Variable) else here

  # TensorFlow's warm start replaces the initialiser of a variable. The copies,
  # which each session initialises, still start from the centre. The centre
  # starts from the checkpoint, unless it is restored.
  @property
  def _initializer_op(self):
    return None

  @_initializer_op.setter
  def _initializer_op(self, op):
    if op is not None:
      results = self.distribute_strategy.experimental_local_results(op)
      _tf_internals.initialize_from(self.center, results[0])

  def _update_replica(self, update_fn, value, **kwargs):
    return update_fn(self._get_on_device_or_primary(), value, **kwargs)

  def _update_cross_replica(self, update_fn, value, **kwargs):
    with self.distribute_strategy.extended.in_step(False):
      return super()._update_cross_replica(update_fn, value, **kwargs)

  def _get_replica(self, replica_id):
    if _reads_centers.get():
      return self.center
    return super()._get_replica(replica_id)

  def _get_cross_replica(self):
    return self.center.read_value()

  def _gather_saveables_for_checkpoint(self):
    return _tf_internals.saveables_of_copies(
        (self.center, *self.values), self.center, self.name.split(':')[0])


class ElasticDevicesExtended(elastic_steps.ElasticExtendedMixin,
                             mirrored_variables.MirroredInGraph,
                             intercepted_updates.InterceptedUpdates,
                             untuned_inputs.UntunedInputs,
                             _tf_internals.MirroredExtended):
  """StrategyExtended with a copy per device; all devices exchange at once."""

  # Read by the strategy: it needs no session, and each device trains on a
  # separate loss.
  is_replicated = True

  @property
  def num_worker(self) -> int:
    """The number of copies that the default moving rate divides by."""
    return self._settings.num_worker or len(self._devices)

  def _use_merge_call(self):
    # Otherwise optimizers would sum gradients before this class gets them.
    return True

  @contextlib.contextmanager
  def _counting(self, step, replica):
    with self._alone(replica):
      yield step

  def steps_of(self, step: tf.Variable | None, count: int) -> Sequence:
    """See base class; an exchange advances the step, for the first copy."""
    if step is None or self._settings.count_steps == 'local':
      return super().steps_of(step, count)
    return [self._counting(step, replica) for replica in range(count)]

  def _create_local_step(self) -> tf.Variable:
    return elastic_start.create_local_step('/cpu:0')

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
      # Skip `ElasticExtendedMixin`, whose `_create_variable` calls this method.
      copies = super(elastic_steps.ElasticExtendedMixin, self)._create_variable(
          create_copy, **kwargs)
    copies.__class__ = ElasticReplicatedVariable
    _tf_internals.make_sliceable(copies)
    return copies

  def _update(self, var, fn, args, kwargs, group):
    if self._is_in_step or not isinstance(var, ElasticReplicatedVariable):
      return super()._update(var, fn, args, kwargs, group)
    # E.g. `Model.set_weights`: copies and centre are equal afterwards.
    pair = _tf_internals.own_variable(var).pair
    if _tf_internals.is_moving_average(fn):
      return self._average_once(var, pair, fn, args, kwargs, group)
    updated = [fn(variable, *_tf_internals.select_replica(0, args),
                  **_tf_internals.select_replica(0, kwargs))
               for variable in (pair.center, pair.local_center)
               if variable is not None]
    with tf.control_dependencies([u for u in updated if u is not None]):
      return super()._update(var, fn, args, kwargs, group)

  def _average_once(self, var, pair, fn, args, kwargs, group):
    """Updates a moving average once, as it counts its updates."""
    updated = fn(pair.center, *_tf_internals.select_replica(0, args),
                 **_tf_internals.select_replica(0, kwargs))
    with tf.control_dependencies([tf.convert_to_tensor(updated)]):
      value = pair.center.read_value()
      copied = [] if pair.local_center is None else [
          pair.local_center.assign(value, read_value=False)]
    with tf.control_dependencies(copied):
      return super()._update(
          var, lambda copy, *unused, **named: copy.assign(value), args, kwargs,
          group)

  def _call_for_each_replica(self, fn, args, kwargs):
    if _tf_internals.is_keras_inference(fn):
      fn = _reads_centers.set_to(True)(fn)  # Uses the centre.
    # A replica's thread that calls replicas again must not wait for the first
    # call, which waits for it.
    if self._is_in_step:
      return super()._call_for_each_replica(fn, args, kwargs)
    with _tf_internals.models_by_replica():
      return super()._call_for_each_replica(fn, args, kwargs)

  def _end_step(self, exchange, result):
    result = super()._end_step(exchange, result)
    if not hasattr(result, 'train_op'):
      return result
    # Estimator reports the sum of the replicas' losses.
    losses = self._local_results(result.loss)
    return parameter_server_base.with_fields(
        result, loss=_tf_internals.regroup(
            tuple(loss / len(losses) for loss in losses)))
