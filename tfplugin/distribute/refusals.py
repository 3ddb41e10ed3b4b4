# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Uses that strategies refuse: nested scopes, Keras sessions and optimizers.

Both classes are mixins and go before a strategy's class. Both let the
early-stopping hooks of Estimator accept the strategy.

Callers of the functions, in the `_update` of strategies, each with its own
reason:
  refuse_keras_update: cross shard with several groups.
  refuse_keras_step_count: drop stale, and elastic averaging that counts
    exchanges.
  refuse_keras_3_update: towers in a graph, shared shards, and elastic averaging
    within a process.

Clipping and packed parameter servers refuse none. Under a decorator
`estimator.model_fn` refuses a Keras optimizer that is alone, and the
audit finds its writes beside other optimizers.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import cluster_task

_ESTIMATOR = 'tensorflow_estimator'


def on_instance(method: Callable) -> Callable:
  """Returns a strategy's method that refuses to be called on the class.

  Estimator calls it so where a RunConfig has the class in place of an instance.
  """

  @functools.wraps(method)
  def checked(*args: Any, **kwargs: Any) -> Any:
    if not (args and isinstance(args[0], OneStrategy)):
      raise TypeError(
          '`train_distribute` and `eval_distribute` must be an instance of a '
          'strategy. Received: its class. Call it, e.g. '
          '`RunConfig(train_distribute=TowerStrategy())`.')
    return method(*args, **kwargs)

  return checked


class OneStrategy:
  """Mixin that refuses to enter the strategy's scope inside another strategy.

  It refuses a strategy's class in the place of an instance, too.
  """

  @property
  def described_as(self) -> str:
    """The strategy's name in messages."""
    return type(self).__name__

  @property
  def extended(self) -> tf.distribute.StrategyExtended:
    """The `extended` of the strategy; Estimator asks before it configures."""
    return super().extended

  @on_instance
  def configure(self, *args: Any, **kwargs: Any) -> None:
    """Configures as `tf.distribute.Strategy`."""
    super().configure(*args, **kwargs)

  def __bool__(self) -> bool:
    """Returns True; a RunConfig asks before any hook is made for it."""
    _mend_early_stopping()
    return True

  def __deepcopy__(self, memo: dict):
    """Returns a copy, for a RunConfig that gets its strategy later."""
    _mend_early_stopping()
    return super().__deepcopy__(memo)

  @on_instance
  def scope(self):
    """Enters the scope as `tf.distribute.Strategy.scope`.

    Raises RuntimeError in the scope, or on a device, of another strategy.
    """
    around = tf.distribute.get_strategy()
    if tf.distribute.has_strategy() and around is not self:
      outer = getattr(around, 'described_as', type(around).__name__)
      raise RuntimeError(
          'A strategy must not be entered inside another one. Received: '
          f'{self.described_as} inside {outer}. Leave out one of the two; '
          'VariableClippingStrategy(base_strategy, ...) adds clipping to any '
          'other.')
    return super().scope()


class NoKerasSessions(OneStrategy):
  """Mixin that refuses `Model.compile` in a graph, too.

  Without eager execution `Model.compile` configures a session for the strategy
  of the current scope, and initialises variables in it. An Estimator configures
  a strategy before it enters the scope. A metric in a model_fn, in a replica,
  may request its own session.
  """

  @on_instance
  def configure(self, *args: Any, **kwargs: Any) -> None:
    """Configures as `tf.distribute.Strategy.configure`, but not for Keras.

    Raises RuntimeError in the scope of a strategy, outside any replica.
    """
    if (tf.distribute.has_strategy() and
        tf.distribute.in_cross_replica_context()):
      raise RuntimeError(
          f'{self.described_as} does not train by `Model.fit` in a graph. '
          'Received: `Model.compile` without eager execution. Use an '
          'Estimator, such as that of `tf.keras.estimator.model_to_estimator`, '
          'or v2 behaviour.')
    super().configure(*args, **kwargs)


def refuse_keras_update(fn, reason: str, remedy: str) -> None:
  """Raises TypeError if `fn`, of `extended.update`, is a Keras optimizer's."""
  module = _tf_internals.keras_module_of(fn)
  if module is not None:
    raise TypeError(
        f'`optimizer` must be a `tf.compat.v1.train.Optimizer`: {reason}. '
        f'Received: an update by the Keras optimizer of `{module}`. Pass e.g. '
        '`tf.compat.v1.train.AdamOptimizer(1e-3)`, use the canned estimators '
        f'of `tf.compat.v1.estimator`{remedy}.')


def refuse_keras_3_update(fn, strategy: tf.distribute.Strategy,
                          reason: str) -> None:
  """Raises TypeError if `fn`, of `extended.update`, is of Keras 3."""
  module = _tf_internals.keras_3_module_of(fn)
  if module is not None:
    raise TypeError(
        f'`optimizer` must not be one of Keras 3 in {strategy.described_as}: '
        f'{reason}. Received: an update by `{module}`. Pass e.g. '
        '`tf.compat.v1.train.AdamOptimizer(1e-3)`, or use `tf.keras` with '
        'tf-keras (`pip install tf-keras`, TF_USE_LEGACY_KERAS=1).')


def refuse_keras_step_count(fn, strategy: tf.distribute.Strategy,
                            remedy: str = '') -> None:
  """Raises TypeError if `fn`, of `extended.update`, is a Keras optimizer's.

  Such an optimizer advances the step, and a strategy cannot prevent that.
  """
  refuse_keras_update(
      fn, f'{strategy.described_as} decides when the global step advances',
      remedy)


def refuse_synchronous(where: str, reason: str, received: str,
                       remedy: str) -> None:
  """Raises the RuntimeError about a `SyncReplicasOptimizer`, `received`."""
  raise RuntimeError(
      '`tf.compat.v1.train.SyncReplicasOptimizer` must not be used '
      f'{where}: {reason}. Received: {received}. {remedy}.')


def _mend_early_stopping() -> None:
  """Makes `stop_if_...` of Estimator accept tfplugin's strategies."""
  if _ESTIMATOR in sys.modules:
    _tf_internals.mend_early_stopping(_may_stop_alone, _is_chief)


def _may_stop_alone(strategy: Any, run_every_secs: float | None) -> bool:
  """Returns whether a strategy's chief may stop without the other processes.

  Without parameter servers, all processes of a cluster stop at the same step. A
  ValueError is raised if they would ask at different ones, by seconds.
  """
  if not hasattr(strategy, 'described_as'):
    return False
  task = cluster_task.from_environment()
  if task.is_alone or task.num_ps:
    return True
  if run_every_secs:
    raise ValueError(
        '`run_every_secs` of an early-stopping hook must be None under '
        f'{strategy.described_as} in several processes, which must all stop at '
        f'the same step. Received: {run_every_secs!r}. Pass '
        '`run_every_secs=None, run_every_steps=100`, for example.')
  return False


def _is_chief(config: tf.estimator.RunConfig) -> bool:
  return cluster_task.from_config(config).is_chief
