# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every form of every wrapper, and how it trains a program."""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Any
from typing import Callable

import numpy as np
import tensorflow as tf

import tfplugin
from tests.programs import by_hand
from tfplugin import distribute
from tfplugin import estimator

tf1 = tf.compat.v1

DEVICES = ['/cpu:0', '/cpu:1']
# What is in a checkpoint beside the variables of a program.
_ADDED = 'global_step|stale_counter|signal_early_stopping'
# What takes most of the time of a short training is left out: events, all
# checkpoints but the last, and the optimization of graphs.
_SESSION = tf1.ConfigProto(device_count={'CPU': 4}, allow_soft_placement=True)
_SESSION.graph_options.rewrite_options.disable_meta_optimizer = True
_CONFIG = dict(
    save_checkpoints_steps=None, save_checkpoints_secs=None,
    save_summary_steps=None, log_step_count_steps=None, session_config=_SESSION)


@dataclasses.dataclass(frozen=True)
class Form:
  """A way to put a wrapper around a program.

  Attributes:
    rule: A key of `by_hand.RULES`.
    split: How a batch is split: `''`, or a key of `Program.splits`.
    decorate: Makes a model_fn of a model_fn, given the program.
    strategy: Makes a strategy, given the program; None without one.
    is_tpu: Whether a ShardedTPUEstimator trains.
    counts: `'communications'` where the global step counts these.
  """

  rule: str = ''
  split: str = ''
  decorate: Callable[[by_hand.Program], Callable] = lambda p: p.model_fn
  strategy: Callable[[by_hand.Program], Any] | None = None
  is_tpu: bool = False
  counts: str = 'steps'

  @property
  def replicas(self) -> int:
    """How many batches a step takes."""
    return 2 if self.split and self.strategy else 1

  def reference_of(self, program: by_hand.Program) -> tuple[str, str]:
    """Returns the arguments of `by_hand.reference` beside the program."""
    default = 'shards' if self.split == 'mirrored' else ''
    split = next((split for split in (self.split, default)
                  if split in program.splits), '')
    return split, self.rule


_ELASTIC = dict(communication_period=by_hand.PERIOD, moving_rate=by_hand.RATE)


def _drop(model_fn):
  return estimator.drop_stale_gradients(model_fn, staleness=100)


def _clip(model_fn, program):
  return estimator.clip_variables(
      model_fn, rules=program.rules, max_norm=program.max_norm)


def _mirrored():
  return tf.distribute.MirroredStrategy(
      DEVICES, tf.distribute.ReductionToOneDevice())


_elastic_average = functools.partial(estimator.elastic_average, **_ELASTIC)
_cross_shard = functools.partial(estimator.cross_shard, devices=DEVICES)
_replicate = functools.partial(tfplugin.replicate_model_fn, devices=DEVICES)


def _clipping(make_base, split=''):
  return Form('clipped', split, strategy=lambda p: (
      distribute.VariableClippingStrategy(make_base(), p.rules, p.max_norm)))


def _shards_of_tpu(decorate):
  """A form whose model_fn takes what a TPUEstimator gives."""

  def with_params(program):
    model_fn = decorate(program)
    return lambda features, labels, mode, params: model_fn(
        features=features, labels=labels, mode=mode)

  return with_params


FORMS = {
    '`drop_stale_gradients`': Form(decorate=lambda p: _drop(p.model_fn)),
    '`clip_variables`': Form(
        'clipped', decorate=lambda p: _clip(p.model_fn, p)),
    '`elastic_average`': Form(
        'elastic', decorate=lambda p: _elastic_average(p.model_fn),
        counts='communications'),
    '`replicate_model_fn`': Form(
        split='towers', decorate=lambda p: _replicate(p.model_fn)),
    '`cross_shard`': Form(
        split='shards', decorate=lambda p: _cross_shard(p.model_fn)),
    'clip above drop': Form(
        'clipped', decorate=lambda p: _clip(_drop(p.model_fn), p)),
    'elastic above clip': Form(
        'clipped, elastic', decorate=lambda p: _elastic_average(
            _clip(p.model_fn, p)), counts='communications'),
    'elastic above drop': Form(
        'elastic', decorate=lambda p: _elastic_average(_drop(p.model_fn)),
        counts='communications'),
    'cross_shard above clip': Form(
        'clipped', 'shards', lambda p: _cross_shard(_clip(p.model_fn, p))),
    'cross_shard above drop': Form(
        '', 'shards', lambda p: _cross_shard(_drop(p.model_fn))),
    'replicate above clip': Form(
        'clipped', 'towers', lambda p: _replicate(_clip(p.model_fn, p))),
    'replicate above drop': Form(
        '', 'towers', lambda p: _replicate(_drop(p.model_fn))),
    'DropStaleGradientStrategy': Form(
        strategy=lambda p: distribute.DropStaleGradientStrategy(staleness=100)),
    'ElasticAverageStrategy': Form(
        'elastic', strategy=lambda p: distribute.ElasticAverageStrategy(
            **_ELASTIC), counts='communications, always'),
    'ElasticAverageStrategy(devices)': Form(
        'elastic, two copies',
        strategy=lambda p: distribute.ElasticAverageStrategy(
            devices=DEVICES, **_ELASTIC), counts='communications, always'),
    'TowerStrategy': Form(
        split='towers', strategy=lambda p: distribute.TowerStrategy(DEVICES)),
    'CrossShardStrategy': Form(
        split='shards',
        strategy=lambda p: distribute.CrossShardStrategy(DEVICES)),
    'VariableClippingStrategy': _clipping(
        lambda: tf.distribute.OneDeviceStrategy('/cpu:0')),
    'the same over drop stale': _clipping(
        lambda: distribute.DropStaleGradientStrategy(staleness=100)),
    'over towers': _clipping(
        lambda: distribute.TowerStrategy(DEVICES), 'towers'),
    'over mirrored': _clipping(_mirrored, 'mirrored'),
    'over cross shard': _clipping(
        lambda: distribute.CrossShardStrategy(DEVICES), 'shards'),
    'ShardedTPUEstimator': Form(
        '', 'shards', _shards_of_tpu(lambda p: p.model_fn), is_tpu=True),
    'the same with clip': Form(
        'clipped', 'shards',
        _shards_of_tpu(lambda p: _clip(p.model_fn, p)), is_tpu=True),
}


class _SaveAtEnd(tf1.train.SessionRunHook):
  """Writes the checkpoint of a training with the Saver of its graph."""

  def __init__(self, model_dir: Any):
    self._path = f'{model_dir}/model.ckpt'

  def end(self, session):
    saver, *_ = tf1.get_collection(tf1.GraphKeys.SAVERS)
    saver.save(session, self._path, tf1.train.get_global_step(),
               write_meta_graph=False)


def _estimator(program: by_hand.Program, form: Form, model_dir: Any):
  """Returns an Estimator, and its input_fn."""
  if form.is_tpu:
    config = tf1.estimator.tpu.RunConfig(
        model_dir=str(model_dir), tpu_config=tf1.estimator.tpu.TPUConfig(
            num_shards=len(DEVICES)), **_CONFIG)
    return estimator.ShardedTPUEstimator(
        form.decorate(program), config=config, use_tpu=False,
        train_batch_size=by_hand.ROWS, devices=DEVICES), (
            lambda params: program.dataset(params['batch_size']))
  config = tf.estimator.RunConfig(
      str(model_dir), **_CONFIG,
      train_distribute=form.strategy and form.strategy(program))
  return tf.estimator.Estimator(form.decorate(program), config=config), (
      lambda: program.dataset(by_hand.ROWS // form.replicas))


def train(program: by_hand.Program, form: Form, model_dir) -> dict:
  """Trains by an Estimator; returns all variables of the checkpoint."""
  steps = program.steps
  if form.counts == 'communications, always' or (
      form.counts == 'communications' and not program.own_steps):
    steps //= by_hand.PERIOD * program.applied_every
  trained, input_fn = _estimator(program, form, model_dir)
  program.train(trained, input_fn, steps=steps, hooks=[_SaveAtEnd(model_dir)])
  checkpoint = tf.train.load_checkpoint(str(model_dir))
  return {name: checkpoint.get_tensor(name)
          for name in checkpoint.get_variable_to_shape_map()}


def assert_close(values: dict, expected: dict, tolerance: float) -> None:
  """Raises unless a checkpoint has the variables of a reference."""
  names = {name for name in values if not re.search(_ADDED, name)}
  assert names == set(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(values[name], value, tolerance, tolerance,
                               err_msg=name)
