# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every form of every wrapper, and what a program has to come to under it.

What it has to come to is computed without tfplugin: the plain program runs on
one device, and numpy does the rule between its steps.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Any
from typing import Callable
from typing import Optional

import numpy as np
import tensorflow as tf

import tfplugin
from tfplugin import distribute
from tfplugin import estimator

tf1 = tf.compat.v1

DEVICES = ['/cpu:0', '/cpu:1']
ROWS = 4
PERIOD, RATE = 2, 0.25
_STATE_ADDED = frozenset(('global_step', 'stale_counter'))


@dataclasses.dataclass(frozen=True)
class Program:
  """A program that knows nothing of tfplugin.

  Attributes:
    model_fn: Of an Estimator.
    dataset: Makes the input, given the rows of a batch; all batches of `ROWS`
      rows are the same.
    state: A regular expression: the names of optimizer state.
    rules: What is clipped: expressions and dims.
    max_norm: The bound.
    halves: Trains on one device as two shards would, given a function that is
      called after each step; None: as on the whole batch.
    steps: How many.
    own_steps: Whether it advances the global step itself.
    refused: Forms that refuse it, with an expression for the message.
  """

  model_fn: Callable[..., Any]
  dataset: Callable[[int], tf.data.Dataset]
  state: str
  rules: dict[str, int]
  max_norm: float
  halves: Optional[Callable[[Callable], dict]] = None
  steps: int = 4
  own_steps: bool = False
  refused: dict[str, str] = dataclasses.field(default_factory=dict)

  def clipped(self, values: dict, number: int) -> dict:
    """Returns the values after step `number`, clipped by numpy."""
    if not number:
      return values
    result = dict(values)
    for name, value in values.items():
      dims = [d for rule, d in self.rules.items() if re.search(rule, name)]
      if dims and not re.search(self.state, name):
        norms = np.linalg.norm(value, axis=dims[0], keepdims=True)
        result[name] = value * np.minimum(
            1.0, self.max_norm / np.maximum(norms, 1e-9))
    return result


class Elastic:
  """Moves copies and their centre, by numpy; all copies are alike."""

  def __init__(self, state: str, num_copies: int):
    self.state, self.num_copies = state, num_copies
    self.centers = None

  def __call__(self, values: dict, number: int) -> dict:
    averaged = {name: value for name, value in values.items()
                if not re.search(self.state, name)}
    if not number:
      self.centers = averaged
    if not number or number % PERIOD:
      return values
    moves = {n: RATE * (v - self.centers[n]) for n, v in averaged.items()}
    self.centers = {n: c + self.num_copies * moves[n]
                    for n, c in self.centers.items()}
    return {**values, **{n: v - moves[n] for n, v in averaged.items()}}


def run_by_hand(build: Callable[[Any, Any], Any], program: Program,
                after_step: Callable[[dict, int], dict]) -> dict:
  """Trains on one device; returns the values of all variables but the step.

  Args:
    build: Makes the train_op of features and labels.
    program: The program.
    after_step: Changes the values of all variables; gets the number of steps
      that were made.
  """
  with tf.Graph().as_default():
    features, labels = tf1.data.make_one_shot_iterator(
        program.dataset(ROWS)).get_next()
    step = tf1.train.create_global_step()
    train_op = build(features, labels)
    variables = [v for v in tf1.global_variables() if v is not step]
    names = [v.name.split(':')[0] for v in variables]
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run(tf1.local_variables_initializer())
      for number in range(program.steps + 1):
        if number:
          session.run(train_op)
        values = after_step(dict(zip(names, session.run(
            [v.read_value() for v in variables]))), number)
        for name, variable in zip(names, variables):
          variable.load(values[name], session)
  return values


def _plain(program: Program, after_step=lambda values, number: values) -> dict:
  return run_by_hand(lambda x, y: program.model_fn(
      features=x, labels=y, mode=tf.estimator.ModeKeys.TRAIN).train_op,
                     program, after_step)


def _shards(program: Program, after_step=lambda values, number: values) -> dict:
  if program.halves is None:
    return _plain(program, after_step)
  return program.halves(after_step)


def _elastic(program: Program, num_copies: int) -> dict:
  rule = Elastic(program.state, num_copies)
  return {**_plain(program, rule), **rule.centers}


REFERENCES = {
    'plain': _plain,
    'clipped': lambda program: _plain(program, program.clipped),
    'shards': _shards,
    'shards, clipped': lambda program: _shards(program, program.clipped),
    'elastic': lambda program: _elastic(program, 1),
    'elastic, two copies': lambda program: _elastic(program, 2),
}


@dataclasses.dataclass(frozen=True)
class Form:
  """A way to put a wrapper around a program.

  Attributes:
    reference: A key of `REFERENCES`.
    decorate: Makes a model_fn of a model_fn, given the program.
    strategy: Makes a strategy, given the program; None without one.
    replicas: How many batches a step of the strategy takes.
    counts: `'communications'` where the global step counts these.
  """

  reference: str
  decorate: Callable[[Program], Callable] = lambda program: program.model_fn
  strategy: Optional[Callable[[Program], Any]] = None
  replicas: int = 1
  counts: str = 'steps'


_ELASTIC = dict(communication_period=PERIOD, moving_rate=RATE)


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


def _clipping(make_base, reference='clipped', replicas=1):
  return Form(reference, strategy=lambda p: distribute.VariableClippingStrategy(
      make_base(), p.rules, p.max_norm), replicas=replicas)


FORMS = {
    '`drop_stale_gradients`': Form('plain', lambda p: _drop(p.model_fn)),
    '`clip_variables`': Form('clipped', lambda p: _clip(p.model_fn, p)),
    '`elastic_average`': Form(
        'elastic', lambda p: _elastic_average(p.model_fn),
        counts='communications'),
    '`replicate_model_fn`': Form('plain', lambda p: _replicate(p.model_fn)),
    '`cross_shard`': Form('shards', lambda p: _cross_shard(p.model_fn)),
    'clip above drop': Form('clipped', lambda p: _clip(_drop(p.model_fn), p)),
    'elastic above clip': Form(
        'elastic', lambda p: _elastic_average(estimator.clip_variables(
            p.model_fn, rules=p.rules, max_norm=1e6)),
        counts='communications'),
    'cross_shard above clip': Form(
        'shards, clipped', lambda p: _cross_shard(_clip(p.model_fn, p))),
    'replicate above drop': Form(
        'plain', lambda p: _replicate(_drop(p.model_fn))),
    'DropStaleGradientStrategy': Form(
        'plain', strategy=lambda p: distribute.DropStaleGradientStrategy(
            staleness=100)),
    'ElasticAverageStrategy': Form(
        'elastic', strategy=lambda p: distribute.ElasticAverageStrategy(
            **_ELASTIC), counts='communications, always'),
    'ElasticAverageStrategy(devices)': Form(
        'elastic, two copies',
        strategy=lambda p: distribute.ElasticAverageStrategy(
            devices=DEVICES, **_ELASTIC), counts='communications, always'),
    'TowerStrategy': Form(
        'plain', strategy=lambda p: distribute.TowerStrategy(DEVICES),
        replicas=2),
    'CrossShardStrategy': Form(
        'shards', strategy=lambda p: distribute.CrossShardStrategy(DEVICES),
        replicas=2),
    'VariableClippingStrategy': _clipping(
        lambda: tf.distribute.OneDeviceStrategy('/cpu:0')),
    'the same over drop stale': _clipping(
        lambda: distribute.DropStaleGradientStrategy(staleness=100)),
    'over towers': _clipping(
        lambda: distribute.TowerStrategy(DEVICES), replicas=2),
    'over mirrored': _clipping(_mirrored, 'shards, clipped', 2),
    'over cross shard': _clipping(
        lambda: distribute.CrossShardStrategy(DEVICES), 'shards, clipped', 2),
}


def train(program: Program, form: Form, model_dir) -> dict:
  """Trains by an Estimator; returns all variables of the checkpoint."""
  strategy = form.strategy and form.strategy(program)
  rows = ROWS // form.replicas
  steps = program.steps
  if form.counts == 'communications, always' or (
      form.counts == 'communications' and not program.own_steps):
    steps //= PERIOD
  config = tf.estimator.RunConfig(
      str(model_dir), train_distribute=strategy, log_step_count_steps=None,
      session_config=tf1.ConfigProto(
          device_count={'CPU': 4}, allow_soft_placement=True))
  trained = tf.estimator.Estimator(form.decorate(program), config=config)
  trained.train(lambda: program.dataset(rows), steps=steps)
  return {name: trained.get_variable_value(name)
          for name in trained.get_variable_names()}


def assert_close(values: dict, expected: dict) -> None:
  """Raises unless a checkpoint has the variables of a reference."""
  assert set(values) - _STATE_ADDED == set(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(values[name], value, atol=3e-6, err_msg=name)
