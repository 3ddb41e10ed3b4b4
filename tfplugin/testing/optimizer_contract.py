# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Contract of every optimizer wrapper, as checks that anyone can run.

A wrapper with settings under which its rule does nothing must behave as the
optimizer that it wraps: the same weights bit for bit, the same slots, names and
checkpoints. Each check builds one small graph with the bare optimizer and one
with the wrapper and compares. It takes `wrapping`, which says how the optimizer
is wrapped, and `make_optimizer`, which makes the optimizer inside. Use the
functions, or the mixin:

  class MyWrapperTest(optimizer_contract.OptimizerContract):
    wrapping = optimizer_contract.Wrapping(
        lambda opt, variables: MyWrapper(opt))
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import re
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Callable

import numpy as np
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.testing import contract_models

tf1 = tf.compat.v1

Optimizer = tf1.train.Optimizer
MakeOptimizer = Callable[[], Optimizer]
Build = Callable[[Optimizer, contract_models.Model, tf.Variable],
                 Sequence[tf.Operation]]


@dataclasses.dataclass(frozen=True)
class Wrapping:
  """A way to wrap an optimizer so that the wrapper's rule does nothing.

  Attributes:
    wrap: Returns the wrapper of an optimizer, for a list of variables.
    make_getter: Returns the `custom_getter` the variables are made with, if
      any. It is called once per graph, before `wrap`.
    init_ops: Returns the ops to run after the initializers.
    own_variables: A regular expression for the names of the variables that the
      wrapper adds to the wrapped optimizer's.
    checkpoint_moves: Whether a plain `Saver` restores a checkpoint of the bare
      optimizer with the wrapper, and the reverse.
  """

  wrap: Callable[[Optimizer, Sequence[tf.Variable]], Optimizer]
  make_getter: Callable[[], Any] = lambda: None
  init_ops: Callable[[Optimizer], Sequence[tf.Operation]] = (
      lambda optimizer: ())
  own_variables: str = '(?!)'
  checkpoint_moves: bool = True


BARE = Wrapping(lambda optimizer, variables: optimizer)


@dataclasses.dataclass
class Trainer:
  """A graph with a model and an optimizer, and a session on it."""

  session: tf1.Session
  optimizer: Optimizer
  model: contract_models.Model
  step: tf.Variable
  train_ops: Sequence[tf.Operation]

  def run(self, steps: int) -> None:
    """Trains: in each step every train op once, one after the other."""
    for _ in range(steps):
      for train_op in self.train_ops:
        self.session.run(train_op)

  def values(self) -> dict[str, np.ndarray]:
    """Returns all variables' values, the optimizer's included, by name."""
    variables = {v.name: v for v in (
        *self.model.variables, *self.optimizer.variables(), self.step)}
    return self.session.run(
        {name: v.read_value() for name, v in variables.items()})

  def slots(self) -> dict[str, str]:
    """Returns the names of the slot variables, by variable and slot."""
    return {f'{variable.name}/{name}': slot.name
            for name in self.optimizer.get_slot_names()
            for variable in self.model.variables
            for slot in [self.optimizer.get_slot(variable, name)]
            if slot is not None}

  def saver(self, own_variables: str) -> tf1.train.Saver:
    """Returns a saver of the variables that the bare optimizer has as well."""
    return tf1.train.Saver([v for v in tf1.global_variables()
                            if not re.fullmatch(own_variables, v.name)])


def _session_config() -> tf1.ConfigProto:
  """Returns a config without graph rewriting, which takes longer than runs."""
  config = tf1.ConfigProto()
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  return config


@contextlib.contextmanager
def trainer(wrapping: Wrapping, make_optimizer: MakeOptimizer,
            build: Build) -> Iterator[Trainer]:
  """Builds a model, an optimizer and train ops, and initialises.

  Args:
    wrapping: How the optimizer is wrapped.
    make_optimizer: Makes the optimizer inside.
    build: Returns train ops, given optimizer, model and global step.

  Yields:
    A `Trainer`.
  """
  with tf.Graph().as_default(), tf1.Session(
      config=_session_config()) as session:
    step = tf1.train.get_or_create_global_step()
    with tf1.variable_scope('', custom_getter=wrapping.make_getter()):
      model = contract_models.build()
    optimizer = wrapping.wrap(make_optimizer(), model.variables)
    train_ops = build(optimizer, model, step)
    init_ops = list(wrapping.init_ops(optimizer))
    session.run([tf1.global_variables_initializer(),
                 tf1.local_variables_initializer()])
    session.run(init_ops)
    yield Trainer(session, optimizer, model, step, train_ops)


def minimize(optimizer: Optimizer, model: contract_models.Model,
             step: tf.Variable) -> Sequence[tf.Operation]:
  """Returns the usual train op."""
  return [optimizer.minimize(model.loss, step, var_list=model.variables)]


@dataclasses.dataclass(frozen=True)
class _Trace:
  """The results of a training, for comparison."""

  values: dict[str, np.ndarray]
  slots: dict[str, str]
  slot_names: list[str]
  names: list[str]


def _trace(wrapping: Wrapping, make_optimizer: MakeOptimizer,
           build: Build) -> _Trace:
  with trainer(wrapping, make_optimizer, build) as trained:
    trained.run(3)
    optimizer = trained.optimizer
    return _Trace(trained.values(), trained.slots(),
                  list(optimizer.get_slot_names()),
                  [v.name for v in optimizer.variables()])


@functools.cache
def _bare_trace(make_optimizer: MakeOptimizer, build: Build,
                resource_variables: bool) -> _Trace:
  """Returns the trace of a bare optimizer, cached for many wrappers."""
  del resource_variables  # the behaviour, as part of the key
  return _trace(BARE, make_optimizer, build)


def _check_same(wrapping: Wrapping, make_optimizer: MakeOptimizer,
                build: Build) -> None:
  """Trains with and without the wrapper and compares everything."""
  bare = _bare_trace(
      make_optimizer, build, tf1.resource_variables_enabled())
  wrapped = _trace(wrapping, make_optimizer, build)
  np.testing.assert_equal(wrapped.slot_names, bare.slot_names)
  np.testing.assert_equal(wrapped.slots, bare.slots)
  np.testing.assert_equal(
      [name for name in wrapped.names
       if not re.fullmatch(wrapping.own_variables, name)], bare.names)
  for name, value in bare.values.items():
    np.testing.assert_array_equal(
        wrapped.values[name], value,
        err_msg=f'{name} differs from the bare optimizer')


def check_equals_bare(wrapping: Wrapping,
                      make_optimizer: MakeOptimizer) -> None:
  """Checks that weights, slots, variables and global step are the bare ones."""
  _check_same(wrapping, make_optimizer, minimize)


def check_without_global_step(wrapping: Wrapping,
                              make_optimizer: MakeOptimizer) -> None:
  """Checks that `global_step=None` trains and keeps the graph's global step."""
  _check_same(wrapping, make_optimizer, _minimize_without_step)


def _minimize_without_step(optimizer, model, step):
  del step
  return [optimizer.minimize(model.loss, var_list=model.variables)]


def check_apply_without_compute(wrapping: Wrapping,
                                make_optimizer: MakeOptimizer) -> None:
  """Checks gradients of `tf.gradients` alone, of which one is None."""
  _check_same(wrapping, make_optimizer, _apply_own_gradients)


def _apply_own_gradients(optimizer, model, step):
  gradients = tf.gradients(model.loss, model.variables)
  gradients[0] = None
  return [optimizer.apply_gradients(
      list(zip(gradients, model.variables)), step)]


def check_second_apply(wrapping: Wrapping,
                       make_optimizer: MakeOptimizer) -> None:
  """Checks one optimizer with two losses: two train ops in one graph."""
  _check_same(wrapping, make_optimizer, _train_in_halves)


def _train_in_halves(optimizer, model, step):
  half = len(model.variables) // 2
  first = optimizer.minimize(
      model.loss, step, var_list=model.variables[:half])
  second = optimizer.compute_gradients(
      model.loss * 2.0, var_list=model.variables[half:])
  return [first, optimizer.apply_gradients(second, global_step=step)]


def check_no_gradients_raises(wrapping: Wrapping,
                              make_optimizer: MakeOptimizer) -> None:
  """Checks that an empty list, and a list of only None, is a ValueError."""

  def build(optimizer, model, step):
    for pairs in ([], [(None, v) for v in model.variables]):
      try:
        optimizer.apply_gradients(pairs, step)
      except ValueError as error:
        if (_tf_internals.is_no_gradient_error(error) or
            '`grads_and_vars` must' in str(error)):
          continue
        raise
      raise AssertionError(f'`apply_gradients` accepted {pairs}')
    return []

  with trainer(wrapping, make_optimizer, build):
    pass


def check_checkpoint_moves(wrapping: Wrapping, make_optimizer: MakeOptimizer,
                           directory: str) -> None:
  """Checks that a checkpoint of either continues with the other.

  Both checkpoints have the same names.

  Args:
    wrapping: How the optimizer is wrapped.
    make_optimizer: Makes the optimizer inside.
    directory: Where checkpoints may be written.
  """
  own = wrapping.own_variables
  with trainer(BARE, make_optimizer, minimize) as bare:
    bare.run(4)
    expected = bare.values()
  keys = []
  for first, second in ((BARE, wrapping), (wrapping, BARE)):
    path = os.path.join(directory, f'from_{len(keys)}')
    with trainer(first, make_optimizer, minimize) as trained:
      trained.run(2)
      trained.saver(own).save(trained.session, path)
    keys.append({key for key, _ in tf.train.list_variables(path)})
    with trainer(second, make_optimizer, minimize) as restored:
      restored.saver(own).restore(restored.session, path)
      restored.run(2)
      values = restored.values()
    for name, value in expected.items():
      np.testing.assert_array_equal(values[name], value, err_msg=name)
  np.testing.assert_equal(keys[0], keys[1])


CHECKS = (check_equals_bare, check_without_global_step,
          check_apply_without_compute, check_second_apply,
          check_no_gradients_raises)


class OptimizerContract:
  """A mixin for a test class: set `wrapping`, and `optimizers` if you like."""

  wrapping: Wrapping
  optimizers: Sequence[MakeOptimizer] = (
      lambda: tf1.train.GradientDescentOptimizer(0.125),
      lambda: tf1.train.AdamOptimizer(0.125))

  def test_contract(self):
    """Runs every check with every optimizer."""
    for make_optimizer in self.optimizers:
      for check in CHECKS:
        check(self.wrapping, make_optimizer)

  def test_checkpoint_moves(self):
    """Moves a checkpoint between bare and wrapped."""
    if self.wrapping.checkpoint_moves:
      for make_optimizer in self.optimizers:
        check_checkpoint_moves(
            self.wrapping, make_optimizer, tf1.test.get_temp_dir())
