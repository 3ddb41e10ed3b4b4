# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a program has to come to, computed without tfplugin.

The plain program runs on one device, and numpy does the rule of a wrapper
between its steps.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any
from typing import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

ROWS = 4
PERIOD, RATE = 2, 0.25


class Refused(NamedTuple):
  """A form that a program is refused in.

  Attributes:
    says: A regular expression for the message.
    why: The reason, in short words for the table.
  """

  says: str
  why: str


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
    splits: What trains on one device as `'towers'`, `'shards'` or `'mirrored'`
      do, given a rule; not there: as on the whole batch, and the last one as
      shards.
    formulas: What each of the splits computes, in words for the table.
    steps: How many.
    own_steps: Whether it advances the global step itself.
    applied_every: In which of its steps gradients are applied.
    stops_after: Its first training stops itself after so many steps, and a
      second one goes on.
    train: Trains an Estimator, given its input_fn and number of steps.
    tolerance: How near values come, by the roundings of its types.
    refused: The forms that refuse it.
  """

  model_fn: Callable[..., Any]
  dataset: Callable[[int], tf.data.Dataset]
  state: str
  rules: dict[str, int]
  max_norm: float
  splits: dict[str, Callable[[Rule], dict]] = dataclasses.field(
      default_factory=dict)
  formulas: dict[str, str] = dataclasses.field(default_factory=dict)
  steps: int = 4
  own_steps: bool = False
  applied_every: int = 1
  stops_after: int = 0
  train: Callable[..., Any] = (
      lambda estimator, input_fn, steps, hooks: estimator.train(
          input_fn, steps=steps, hooks=hooks))
  tolerance: float = 3e-6
  refused: dict[str, Refused] = dataclasses.field(default_factory=dict)


class Rule:
  """Changes nothing between the steps of a program."""

  def __init__(self, program: Program):
    self.program = program

  def __call__(self, values: dict, number: int) -> dict:
    """Returns the values of all variables after step `number`, changed."""
    del number
    return values

  def global_step(self, number: int) -> int:
    """Returns the global step after step `number`."""
    return number

  def saved(self, values: dict) -> dict:
    """Returns what a checkpoint has of the last values."""
    return values


class Clipped(Rule):
  """Clips by numpy."""

  def __call__(self, values, number):
    if not number or number % self.program.applied_every:
      return values
    result = dict(values)
    for name, value in values.items():
      dims = [d for rule, d in self.program.rules.items()
              if re.search(rule, name)]
      if dims and not re.search(self.program.state, name):
        norms = np.linalg.norm(value, axis=dims[0], keepdims=True)
        result[name] = value * np.minimum(
            1.0, self.program.max_norm / np.maximum(norms, 1e-9))
    return result


class Elastic(Rule):
  """Moves copies and their centre, by numpy; all copies are alike."""

  num_copies = 1

  def __init__(self, program):
    super().__init__(program)
    self.centers = {}

  def __call__(self, values, number):
    averaged = {name: value for name, value in values.items()
                if np.issubdtype(value.dtype, np.floating) and
                not re.search(self.program.state, name)}
    stops_after = self.program.stops_after
    since = number - (stops_after if number > stops_after else 0)
    if not number:
      self.centers = averaged
    elif since % (PERIOD * self.program.applied_every) == 0:
      moves = {n: RATE * (v - self.centers[n]) for n, v in averaged.items()}
      self.centers = {n: c + self.num_copies * moves[n]
                      for n, c in self.centers.items()}
      values = {**values, **{n: v - moves[n] for n, v in averaged.items()}}
    if number == stops_after:
      # Copies begin again where the checkpoint is.
      values = {**values, **self.centers}
    return values

  def global_step(self, number):
    return number // PERIOD

  def saved(self, values):
    return {**values, **self.centers}


class TwoCopies(Elastic):
  """Moves the centre towards two copies."""

  num_copies = 2


class ElasticClipped(Elastic):
  """Clips before it moves."""

  def __call__(self, values, number):
    return super().__call__(
        Clipped(self.program)(values, number), number)


RULES = {
    '': Rule,
    'clipped': Clipped,
    'elastic': Elastic,
    'elastic, two copies': TwoCopies,
    'clipped, elastic': ElasticClipped,
}


def run_by_hand(build: Callable[[Any, Any], Any], rule: Rule) -> dict:
  """Trains on one device; returns what a checkpoint has, but for the step.

  Args:
    build: Makes the train_op of features and labels.
    rule: Of a program; it is called between the steps.
  """
  program = rule.program
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
      session.run(tf1.tables_initializer())
      for number in range(program.stops_after + program.steps + 1):
        if number:
          session.run(train_op)
        values = rule(dict(zip(names, session.run(
            [v.read_value() for v in variables]))), number)
        for name, variable in zip(names, variables):
          variable.load(values[name], session)
        step.load(rule.global_step(number), session)
  return _whole(rule.saved(values))


def _whole(values: dict) -> dict:
  """Joins the parts of partitioned variables, as a checkpoint does."""
  parts = {}
  for name in sorted(values):
    parts.setdefault(re.sub('/part_[0-9]+', '', name), []).append(values[name])
  return {name: np.concatenate(of_name) if len(of_name) > 1 else of_name[0]
          for name, of_name in parts.items()}


def _one_device(rule: Rule) -> dict:
  def build(features, labels):
    spec = call(rule.program.model_fn, features, labels)
    # An Estimator fetches the loss beside: what waits for it runs.
    return tf.group(spec.loss, spec.train_op)

  return run_by_hand(build, rule)


def call(model_fn: Callable, features: Any, labels: Any):
  """Returns the EstimatorSpec of training."""
  return model_fn(features=features, labels=labels,
                  mode=tf.estimator.ModeKeys.TRAIN)


def reference(program: Program, split: str, rule: str) -> dict:
  """Returns what a checkpoint has to have.

  Args:
    program: The program.
    split: A key of `program.splits`, or another one: on the whole batch.
    rule: A key of `RULES`.
  """
  return program.splits.get(split, _one_device)(RULES[rule](program))
