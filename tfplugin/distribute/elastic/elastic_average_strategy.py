# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Elastic averaging as a `tf.distribute` strategy, and its extended class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin.distribute import local_devices
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute.elastic import elastic_devices
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.elastic import elastic_start
from tfplugin.distribute.elastic import elastic_steps
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.distribute.elastic.values import first_values


class ElasticAverageStrategy(parameter_server_base.ParameterServerStrategy,
                             tf.distribute.Strategy):
  """Strategy that trains a copy of the model per worker, tied to a centre.

  Every worker trains its own copy. Every `communication_period` local steps the
  copy and the centre on the parameter servers move towards each other:

      d = moving_rate * (local - centre);  local -= d;  centre += d

  The model_fn needs no getter, no hook and no saver. The centre has the
  variable's own name. Checkpoints, evaluators, predictions and exports use the
  centre; they run without the strategy, on the same model_dir.

  The kinds of variables:

  * Trainable: a copy on the worker and a centre on a parameter server. A copy
    starts from the centre, also when a worker restarts.
  * Not trainable, floating point, written by the step from data, e.g. batch
    norm's moving averages: likewise by default, so that the statistics fit the
    centre's weights. `statistics='shared'` keeps one variable on a parameter
    server, which every worker updates.
  * Not trainable, floating point, written by the step, but not from data, e.g.
    a counter: each worker's own. The centre takes the value of the worker that
    exchanged last.
  * Not trainable, floating point, not written by the step, e.g. a rate that a
    hook lowers: shared. With an exchange, the value that was set last reaches
    the centre, and then every copy.
  * Not trainable, of another type, and global_step: one variable, on a
    parameter server.
  * Made by an optimizer: on the worker. The chief's is saved, under the name
    that the bare optimizer gives it. Another worker's is initialised again when
    that worker restarts.
  * Metric and other local variables: on the worker.

  `session.run(variable)` and a `Saver` use the centre; computations use the
  copy. With the default `count_steps`, global_step counts the exchanges of all
  workers. So do `max_steps` and learning rate schedules. It makes no difference
  whether an optimizer or the model_fn advances global_step. A local step is a
  session step that applies gradients, however many optimizers apply them. A
  step that only accumulates gradients, for the `tf.cond` of a later step, does
  not count.

  In a cluster also pass `RunConfig(experimental_max_worker_delay_secs=0)`. By
  default TensorFlow delays worker k by 5 s * (k + 1).

  Args:
    cluster_resolver: A `tf.distribute.cluster_resolver.ClusterResolver`; None
      reads `TF_CONFIG`.
    options: `ElasticOptions`: all settings, in the place of keywords.
    devices: Without a cluster: the devices that each train a copy. None takes
      the GPUs of this process if there are two or more, else one device.
    **settings: Fields of `ElasticOptions`, e.g. `communication_period`.

  Raises:
    TypeError: An argument has the wrong type.
    ValueError: An argument is out of range, or the cluster has no `ps`.

  Example:
  >>> import tfplugin.distribute
  >>> strategy = tfplugin.distribute.ElasticAverageStrategy(
  ...     communication_period=4)
  >>> strategy.num_worker
  1

  In a cluster, several devices of one worker average their gradients first.
  Without a cluster, every device has its own copy, and all devices exchange at
  the same time. This is the synchronous variant of the paper:

      centre += sum of all d, each of the values before the exchange

  An exchange of all devices counts as one. This variant also works outside
  Estimator, with `strategy.run` in a `tf.function` and with `Model.fit`.
  Outside of `strategy.run` a variable reads as its centre, and the centre is
  saved. `Model.evaluate` and `Model.predict` use the centre, too. Keras splits
  each batch over the devices; under Estimator each device takes one batch.

  References: S. Zhang, A. Choromanska, Y. LeCun, "Deep learning with Elastic
  Averaging SGD", NeurIPS 2015, https://arxiv.org/abs/1412.6651.

  Differences from tf.contrib: contrib had only the optimizer, no strategy.
  Unlike in the optimizer, `rho` is 0.0 by default. It has no default derived
  from the learning rate, which a strategy does not know.
  """

  _eager_remedy = ('for `Model.fit` and tf.function pass `devices`, two or '
                   'more of this process')

  # Read by TensorFlow's code for several devices, which runs no collectives for
  # this strategy.
  _collective_key_base = 0

  def __init__(
      self,
      cluster_resolver: (
          tf.distribute.cluster_resolver.ClusterResolver | None) = None,
      *,
      options: elastic_settings.ElasticOptions | None = None,
      devices: Sequence[str] | None = None,
      **settings: Any):
    settings = elastic_settings.ElasticSettings.of(
        ElasticAverageStrategy, options, settings)
    resolver = parameter_server_base.resolver_or_default(cluster_resolver)
    devices = _local_devices(devices, resolver)
    settings.check_of_strategy(is_replicated=bool(devices))
    if devices:
      extended = elastic_devices.ElasticDevicesExtended(
          self, settings, devices=devices,
          cross_device_ops=tf.distribute.ReductionToOneDevice())
    else:
      extended = ElasticAverageExtended(
          self, settings, cluster_resolver=resolver)
    super().__init__(extended)

  @property
  def num_worker(self) -> int:
    """The number of workers that the default moving rate divides by."""
    return self.extended.num_worker

  @property
  def num_replicas_in_sync(self) -> int:
    """Number of replicas that share a batch; 1 on a device that trains a copy.

    Such a device trains on its own loss, which is not divided by the number of
    devices.
    """
    on_device = (tf.distribute.has_strategy() and
                 not tf.distribute.in_cross_replica_context())
    if self.extended.is_replicated and on_device:
      return 1
    return super().num_replicas_in_sync

  def _refuse_eager(self) -> None:
    if not self.extended.is_replicated:
      super()._refuse_eager()


def _local_devices(devices, resolver) -> Sequence[str] | None:
  """Returns the devices that each train a copy; None in other cases."""
  if devices is None:
    gpus = [] if resolver.cluster_spec() else local_devices.devices_of('GPU')
    return gpus if len(gpus) > 1 else None
  if resolver.cluster_spec():
    raise ValueError(
        '`devices` must be None in a cluster, where each worker uses its GPUs. '
        f'Received: {devices!r}. Leave it out.')
  devices = local_devices.check_copies(devices)
  if len(devices) < 2:
    raise ValueError(
        '`devices` must name two or more devices, each of which trains a copy. '
        f'Received: {", ".join(devices)}. None trains one copy on one device.')
  return devices


class ElasticAverageExtended(elastic_steps.ElasticExtendedMixin,
                             parameter_server_base.ParameterServerExtended):
  """StrategyExtended with copies on the worker and centres on a ps."""

  is_replicated = False

  def _create_exchange(self):
    if self._in_multi_worker_mode():
      self._signals.for_current_graph(lambda: first_values.create_signal(
          self.parameter_devices[0], self.experimental_should_init,
          is_awaited=not self._settings.synchronous))
    return super()._create_exchange()

  def _create_local_step(self) -> tf.Variable:
    """Makes the step counter, which starts when this worker may start."""
    return elastic_start.create_local_step(
        self.own_device, self._settings, self.task, self.parameter_devices[0])

  @property
  def num_worker(self) -> int:
    """The number of workers that the default moving rate divides by."""
    return self._settings.num_worker or self.task.num_workers

  def _on_server(self):
    return self._on(self._variable_device)

  def _create_state(self, next_creator, **kwargs):
    if not self.experimental_should_init:  # The worker initialises it again.
      kwargs['collections'] = elastic_variables.localized(
          kwargs.get('collections'))
    if kwargs.get('colocate_with') is None:
      return self._create_copies(next_creator, **kwargs)
    return super()._create_state(next_creator, **kwargs)

  def _create_copies(self, create_copy, **kwargs):
    with self._on_worker():
      return self._create_var_creator(create_copy, **kwargs)(**kwargs)
