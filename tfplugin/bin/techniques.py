# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The techniques that `--wrapper` and `--strategy` offer, and their figures.

The model has a plain optimizer and knows no technique. A wrapper is a decorator
of `tfplugin.estimator` around the model_fn. A strategy is given to
`RunConfig(train_distribute=...)` alone. Both take the same settings.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any
from typing import NamedTuple

import tensorflow as tf

from tfplugin import distribute
from tfplugin import estimator
from tfplugin.bin import models
from tfplugin.distribute import per_graph
from tfplugin.distribute.clipping import clip_rules
from tfplugin.distribute.updates import optimizer_interception
from tfplugin.estimator import model_fn as model_fn_lib
from tfplugin.hooks import telemetry_hook
from tfplugin.ops import elastic
from tfplugin.optimizers import drop_stale_gradient
from tfplugin.optimizers import variable_clipping

tf1 = tf.compat.v1

# Norms of clipped rows differ from the bound by rounding.
_ROUNDING = 1e-5


class Report(NamedTuple):
  """The figures of one graph, by the names under which they are shown.

  Attributes:
    figures: Scalar tensors.
    counts: Scalar tensors that are shown as sums over the processes; or
      functions that find the tensor once the graph is complete.
  """

  figures: dict = {}
  counts: dict = {}


@dataclasses.dataclass(frozen=True)
class Technique:
  """One technique, as a wrapper and as a strategy; the default adds nothing.

  Attributes:
    settings: Maps `TrainOptions` to the arguments of decorator and strategy.
    strategy: Takes the settings, and reads TF_CONFIG.
    optimizer: The class of the decorator's optimizers; None if only the graph
      has figures, which `report_of_graph` finds.
    report_of_graph: Maps `TrainOptions` to the report of the default graph.
    has_devices: Whether devices of one process share the work.
    splits_evenly: Whether the decorator's devices must divide a batch.
    own_settings: The fields of `TrainOptions` that affect this technique, but
      not all techniques.
  """

  settings: Callable[[Any], dict] = lambda options: {}
  decorator: Callable[..., Callable] = lambda model_fn: model_fn
  strategy: Callable[..., tf.distribute.Strategy | None] = lambda: None
  optimizer: type | None = None
  report_of_optimizer: Callable[[Any], Report] = lambda optimizer: Report()
  report_of_graph: Callable[[Any], Report] = lambda options: Report()
  has_devices: bool = False
  splits_evenly: bool = False
  needs_ps: bool = False
  own_settings: tuple[str, ...] = ()


def make_strategy(options: Any) -> tf.distribute.Strategy | None:
  """Returns the `train_distribute` of a run; None for no strategy."""
  technique = TECHNIQUES[options.strategy]
  return technique.strategy(**technique.settings(options))


def make_model_fn(options: Any, add_report: Callable) -> Callable:
  """Returns the model_fn of a run, with its wrapper around it.

  In training `add_report` takes the spec and the technique's `Report`. It
  returns the spec for the Estimator.
  """
  wrapper = TECHNIQUES[options.wrapper]
  technique = (wrapper if options.strategy == 'none' else
               TECHNIQUES[options.strategy])

  def build(call: model_fn_lib.ModelFnCall):
    if call.mode != tf.estimator.ModeKeys.TRAIN:
      return call()
    if wrapper.optimizer is None:
      return add_report(call(), technique.report_of_graph(options))
    # Records the optimizer of the decorator and leaves it unchanged.
    interception = optimizer_interception.Interception(lambda o: o,
                                                       wrapper.optimizer)
    with interception.active():
      spec = call()
    optimizer, *_ = interception.already_wrapped
    return add_report(spec, wrapper.report_of_optimizer(optimizer))

  return model_fn_lib.decorate(
      wrapper.decorator(models.MODELS[options.model].model_fn,
                        **wrapper.settings(options)), build)


def _elastic_settings(options) -> dict:
  return dict(
      num_worker=options.workers + 1,
      communication_period=options.communication_period,
      moving_rate=options.moving_rate,
      rho=options.rho,
      synchronous=options.synchronous,
      # `steps` then means the same as with the other techniques.
      count_steps='local')


def _elastic_distance(unused_options) -> Report:
  variables = tf1.trainable_variables()
  return Report({'elastic distance': elastic.distance(
      [v.value() for v in variables],
      [v.center.read_value() for v in variables])})


def _stale_counts(unused_options) -> Report:
  # The strategy makes its counters after the model.
  return Report(counts={
      'dropped': lambda: telemetry_hook.counters()[per_graph.DROPPED],
      'applied': lambda: telemetry_hook.counters()[per_graph.APPLIED]})


def _clip_settings(options) -> dict:
  return dict(rules=models.MODELS[options.model].clip_rules,
              max_norm=options.max_norm)


def _make_clipping_strategy(**settings) -> tf.distribute.Strategy:
  return distribute.VariableClippingStrategy(
      tf1.distribute.experimental.ParameterServerStrategy(), **settings)


def _fraction_at_bound(options) -> Report:
  """Reports the share of the clipped slices whose norm equals the bound."""
  variables = tf1.trainable_variables()
  axes = clip_rules.resolve(clip_rules.parse(_clip_settings(options)['rules']),
                            variables)
  norms = [tf.sqrt(tf.reduce_sum(v.read_value()**2, axes[v.ref()]))
           for v in variables if v.ref() in axes]
  at_bound = tf.concat(norms, 0) >= options.max_norm * (1 - _ROUNDING)
  return Report({'fraction of rows at the bound':
                 tf.reduce_mean(tf.cast(at_bound, tf.float32))})


def _devices(options) -> dict:
  return dict(devices=[f'/cpu:{i}' for i in range(options.devices)])


TECHNIQUES = {
    'elastic_average': Technique(
        settings=_elastic_settings,
        decorator=estimator.elastic_average,
        strategy=distribute.ElasticAverageStrategy,
        report_of_graph=_elastic_distance,
        needs_ps=True,
        own_settings=('communication_period', 'moving_rate', 'rho',
                      'synchronous')),
    'drop_stale': Technique(
        settings=lambda options: dict(staleness=options.staleness),
        decorator=estimator.drop_stale_gradients,
        strategy=distribute.DropStaleGradientStrategy,
        optimizer=drop_stale_gradient.DropStaleGradientOptimizer,
        report_of_optimizer=lambda optimizer: Report(
            {'staleness': optimizer.staleness},
            {'dropped': optimizer.num_dropped,
             'applied': optimizer.num_applied}),
        report_of_graph=_stale_counts,
        needs_ps=True,
        own_settings=('staleness',)),
    'clip': Technique(
        settings=_clip_settings,
        # Several workers update the same rows. With the lock, update and clip
        # are one operation, and no worker ever reads a row outside the ball.
        decorator=functools.partial(estimator.clip_variables, use_locking=True),
        strategy=_make_clipping_strategy,
        optimizer=variable_clipping.VariableClippingOptimizer,
        report_of_optimizer=lambda optimizer: Report(
            {'fraction of rows clipped': optimizer.fraction_clipped}),
        report_of_graph=_fraction_at_bound,
        own_settings=('max_norm',)),
    'towers': Technique(
        settings=_devices,
        decorator=estimator.replicate_model_fn,
        strategy=distribute.TowerStrategy,
        has_devices=True,
        own_settings=('devices',)),
    'cross_shard': Technique(
        settings=_devices,
        decorator=estimator.cross_shard,
        strategy=distribute.CrossShardStrategy,
        has_devices=True,
        splits_evenly=True,
        own_settings=('devices',)),
    'none': Technique(),
}


def with_setting(name: str) -> list[str]:
  """Returns the techniques that a setting affects."""
  return [key for key, technique in TECHNIQUES.items()
          if name in technique.own_settings]
