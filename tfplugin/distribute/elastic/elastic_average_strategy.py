# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Elastic averaging as a `tf.distribute` strategy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from tfplugin.distribute import local_devices
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute.elastic import elastic_average_extended
from tfplugin.distribute.elastic import elastic_devices
from tfplugin.distribute.elastic import elastic_settings

tf1 = tf.compat.v1


class ElasticAverageStrategy(parameter_server_base.ParameterServerStrategy,
                             tf.distribute.Strategy):
  """Trains a copy of the model per worker, tied to a centre by a spring.

  Every worker trains its own copy. Every `communication_period` local steps
  the copy and the centre on the parameter servers move towards each other:

      d = moving_rate * (local - centre);  local -= d;  centre += d

  The model_fn knows nothing of it: no getter, no hook, no saver. The centre has
  the variable's own name, and is what checkpoints, evaluators, predictions and
  exports see; those run without the strategy, on the same model_dir.

  What becomes of each variable:

  * Trainable: a copy on the worker and a centre on a parameter server. A copy
    starts from the centre, also when a worker restarts.
  * Not trainable, floating point, written by the step, e.g. batch norm's moving
    averages: likewise by default, so that the centre's statistics are those of
    the centre's weights; `statistics='shared'` keeps one on a parameter server,
    which every worker updates.
  * Not trainable, floating point, not written by the step, e.g. a rate that a
    hook lowers: shared. The value that was set last reaches the centre, and
    then every copy, with the exchanges.
  * Not trainable, another type; global_step: one, on a parameter server.
  * Whatever an optimizer makes: on the worker. The chief's is saved, under the
    names that the bare optimizer gives it; another worker's starts anew.
  * Metric and other local variables: on the worker.

  `session.run(variable)` and a `Saver` take the centre; computations take the
  copy. With the default `count_steps` global_step counts the communications of
  all workers, so that `max_steps` and learning rate schedules do, too, whether
  an optimizer advances it or the model_fn itself. A local step is a step of the
  session that applies gradients, however many optimizers do; one that only
  accumulates them, and applies them in a later step's `tf.cond`, is none.

  In a cluster pass `RunConfig(experimental_max_worker_delay_secs=0)`, too: by
  default TensorFlow delays worker k by 5 s * (k + 1).

  Args:
    cluster_resolver: A `tf.distribute.cluster_resolver.ClusterResolver`; None
      reads `TF_CONFIG`.
    num_worker: The number of workers, for the default moving rate. None counts
      chief and workers of the cluster.
    communication_period: Local steps from one exchange to the next.
    moving_rate: The part of the difference that moves, in [0, 1]. None means
      0.9 / communication_period / num_worker.
    rho: The weight of the exploration penalty, rho / 2 * |local - c|^2, where
      c is the centre that the worker saw last. It acts on the gradients; the
      reported loss is without it. With 0, no c is kept.
    synchronous: Whether workers wait for each other before their first step.
    update_order: `'gradient_first'`, or `'elastic_first'` for the rule as
      published, whose difference is that of the values before the gradient.
    count_steps: What global_step counts: `'communications'` or `'local'`. None:
      communications, with a warning that says how many steps that makes.
    statistics: `'average'` or `'shared'`, see above.
    sparse_exchange: Whether a variable with sparse gradients exchanges only the
      rows that this worker's gradients touched since its last exchange. A row
      that a worker does not touch stays as it was on that worker, also where
      the centre moves on, and catches up once touched. Rows that an optimizer
      moves without a gradient, as Adam does, count as not touched.
    on_nonfinite: What becomes of gradients, and of what an exchange would move,
      with a NaN or an infinity: `'apply'` as ever; `'drop'` neither copies nor
      centre change, and the step does not count; `'raise'` an error that names
      the worker, its step and the variables. The devices of a process decide
      together. Drops are counted in the local `elastic_average/num_nonfinite`
      and shown as `elastic_average/nonfinite`.
    exchange_dtype: The type in which values cross the network, where that is
      smaller than theirs: `'float16'`, `'bfloat16'` or `'int8'`; None: their
      own. docs/exchange.md has the rules.
    overlap: Whether a communication runs beside the steps that follow it, in a
      thread of the session. The difference is that of the copy as it was when
      the communication began. docs/exchange.md has the rule and its bound.
    devices: Without a cluster: the devices that each train a copy. None takes
      the GPUs of this process if there are two or more, else one device.

  Raises:
    TypeError: An argument has the wrong type.
    ValueError: An argument is out of range, or the cluster has no `ps`.

  Example:
  >>> strategy = tfplugin.distribute.ElasticAverageStrategy(
  ...     communication_period=4)
  >>> strategy.num_worker
  1

  In a cluster, several devices of one worker average their gradients first.
  Without one, every device has its own copy and they all run the rule at the
  same time, which is the synchronous variant of the paper:

      centre += sum of all d, each of the values before the exchange

  An exchange of all devices then counts as one communication. This variant also
  works outside Estimator, with `strategy.run` in a `tf.function` and with
  `Model.fit`: outside of `strategy.run` a variable reads as its centre, and
  that is what is saved; `Model.evaluate` and `Model.predict` use it, too. Keras
  splits each batch over the devices; under Estimator each takes one batch.

  References: S. Zhang, A. Choromanska, Y. LeCun, "Deep learning with Elastic
  Averaging SGD", NeurIPS 2015, https://arxiv.org/abs/1412.6651.

  Differences from tf.contrib: none to compare with; contrib had the optimizer
  only. Unlike there, `rho` is 0.0 by default and has no default derived from
  the learning rate, which a strategy does not see.
  """

  _eager_remedy = ('for `Model.fit` and tf.function pass `devices`, two or '
                   'more of this process')

  # Asked for by TensorFlow's own code for several devices, which runs no
  # collectives here.
  _collective_key_base = 0

  def __init__(
      self,
      cluster_resolver: Optional[
          tf.distribute.cluster_resolver.ClusterResolver] = None,
      *,
      num_worker: Optional[int] = None,
      communication_period: int = 10,
      moving_rate: Optional[float] = None,
      rho: float = 0.0,
      synchronous: bool = False,
      update_order: str = 'gradient_first',
      count_steps: Optional[str] = None,
      statistics: str = 'average',
      sparse_exchange: bool = False,
      on_nonfinite: str = 'apply',
      exchange_dtype: Optional[str] = None,
      overlap: bool = False,
      devices: Optional[Sequence[str]] = None):
    settings = elastic_settings.ElasticSettings.with_counted_steps(
        count_steps, num_worker=num_worker,
        communication_period=communication_period, moving_rate=moving_rate,
        rho=rho, synchronous=synchronous, update_order=update_order,
        statistics=statistics, sparse_exchange=sparse_exchange,
        on_nonfinite=on_nonfinite, exchange_dtype=exchange_dtype,
        overlap=overlap)
    resolver = parameter_server_base.resolver_or_default(cluster_resolver)
    devices = _local_devices(devices, resolver)
    settings.check_of_strategy(is_replicated=bool(devices))
    if devices:
      extended = elastic_devices.ElasticDevicesExtended(
          self, settings, devices=devices,
          cross_device_ops=tf.distribute.ReductionToOneDevice())
    else:
      extended = elastic_average_extended.ElasticAverageExtended(
          self, settings, cluster_resolver=resolver)
    super().__init__(extended)

  @property
  def num_worker(self) -> int:
    """The number of workers that the default moving rate divides by."""
    return self.extended.num_worker

  @property
  def num_replicas_in_sync(self) -> int:
    """Parts of a batch; on a device that has a copy of its own, 1.

    Such a device trains on its own loss: there is nothing to divide by.
    """
    on_device = (tf.distribute.has_strategy() and
                 not tf.distribute.in_cross_replica_context())
    if self.extended.is_replicated and on_device:
      return 1
    return super().num_replicas_in_sync

  def _refuse_eager(self) -> None:
    if not self.extended.is_replicated:
      super()._refuse_eager()


def _local_devices(devices, resolver) -> Optional[Sequence[str]]:
  """The devices that have copies of their own, or None in other cases."""
  if devices is None:
    gpus = [] if resolver.cluster_spec() else local_devices.devices_of('GPU')
    return gpus if len(gpus) > 1 else None
  if resolver.cluster_spec():
    raise ValueError(
        '`devices` must be None in a cluster, where the worker decides. '
        f'Received: {devices!r}.')
  devices = local_devices.check_copies(devices)
  if len(devices) < 2:
    raise ValueError(
        '`devices` must name two or more devices, each of which trains a copy. '
        f'Received: {", ".join(devices)}. None trains one copy on one device.')
  return devices
