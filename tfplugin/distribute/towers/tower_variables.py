# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables that all towers share, made by the first tower."""

from __future__ import annotations

import re
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.towers import tower_collections
from tfplugin.distribute.variables import agreed_writes

tf1 = tf.compat.v1

_FIRST = tf.VariableAggregation.ONLY_FIRST_REPLICA
_UNIQUE_SUFFIX = re.compile(r'_\d+(?=/|$)')


def _scatter(name: str, adds_up: bool):
  """Returns a method that scatters once for all towers.

  The inherited method uses the variable itself, and would act in every tower.
  `adds_up` says whether the slices of several towers, concatenated, make a sum.
  """
  def scatter(self, *args, **kwargs):
    if not adds_up and self.aggregation != _FIRST:
      raise ValueError(
          f'`{name}` of a variable in towers must have the aggregation '
          f'ONLY_FIRST_REPLICA. Received: `{self.name}` with '
          f'{self.aggregation}. Make the variable with that one, or use '
          '`scatter_add`.')
    return self.scattered(name, args, kwargs)

  scatter.__name__ = name
  scatter.__doc__ = f'See `tf.Variable.{name}`; once for all towers.'
  return scatter


class TowerVariable(agreed_writes.AgreedWrites,
                    _tf_internals.AggregatingVariable):
  """One variable that every tower reads, updated once per step.

  An assignment in all towers happens once.
  """

  def scattered(self, method: str, args: tuple, kwargs: dict) -> Any:
    """Returns the result of a scatter method, with the towers' slices.

    `args` and `kwargs` are the method's arguments in this tower.
    """
    if not hasattr(tf.distribute.get_replica_context(), 'value_of_all'):
      return getattr(self.get(), method)(*args, **kwargs)
    names = (('indices', 'updates') if method.startswith('scatter_nd') else
             ('sparse_delta',))
    # Without the op's `name`, which differs between towers.
    arguments = {name: value for name, value in
                 {**dict(zip(names, args)), **kwargs}.items() if name in names}
    first, *others = [
        self.agreed(method, value) for value in arguments.values()]
    return self._assign_func(first, f=lambda variable, value, **unused: getattr(
        variable, method)(value, *others))

  for _name in ('scatter_add', 'scatter_sub'):
    vars()[_name] = _scatter(_name, adds_up=True)
  for _name in ('scatter_update', 'scatter_max', 'scatter_min', 'scatter_mul',
                'scatter_div', 'batch_scatter_update', 'scatter_nd_add',
                'scatter_nd_sub', 'scatter_nd_update', 'scatter_nd_max',
                'scatter_nd_min'):
    vars()[_name] = _scatter(_name, adds_up=False)
  del _name

  @property
  def _initializer_op(self):
    return self.initializer

  @_initializer_op.setter
  def _initializer_op(self, op):
    # A warm start sets it.
    _tf_internals.initialize_like(self.get(), self.handle, op)

  def _gather_saveables_for_checkpoint(self):
    return {_tf_internals.VARIABLE_VALUE_KEY: self.get()}


def share(strategy: tf1.distribute.Strategy, variable: tf.Variable,
          aggregation: tf.VariableAggregation) -> TowerVariable:
  """Returns a resource `variable` wrapped for the towers of `strategy`.

  The values that towers assign are aggregated by `aggregation`. NONE, the
  default of TensorFlow, becomes ONLY_FIRST_REPLICA, with `has_rule` false.
  """
  has_rule = aggregation not in (None, tf.VariableAggregation.NONE)
  if not has_rule:
    aggregation = tf1.VariableAggregation.ONLY_FIRST_REPLICA
  shared = TowerVariable(strategy, variable, aggregation)
  shared.has_rule = has_rule
  tower_collections.replace(tf1.get_default_graph(), variable, shared)
  return shared


class SharedVariables:
  """Variables that the first tower made, in order, for the others."""

  def __init__(self):
    """Starts empty."""
    self._made = []
    self._taken = {}

  def creator(self, tower: int):
    """Returns a variable creator for `tower`: 0 makes, the others reuse."""
    if tower == 0:
      return self._make
    self._taken[tower] = 0
    return lambda next_creator, **kwargs: self._take(tower, kwargs)

  def check_all_taken(self) -> None:
    """Raises if a tower made fewer variables than the first one."""
    for tower, count in self._taken.items():
      if count < len(self._made):
        name = self._made[count][0].name
        raise RuntimeError(
            'Towers must make the same variables. Received: a model_fn that '
            f'makes `{name}` in tower 0 and not in tower {tower}. Make '
            'variables whatever the tower.')

  def _make(self, next_creator, **kwargs) -> tf.Variable:
    variable = next_creator(**kwargs)
    keys = tower_collections.keys_with(tf1.get_default_graph(), variable)
    if tf1.GraphKeys.GLOBAL_STEP not in keys:  # The others find it there.
      self._made.append((variable, keys))
    return variable

  def _take(self, tower: int, kwargs: dict) -> tf.Variable:
    index = self._taken[tower]
    name = kwargs.get('name') or 'Variable'
    if index == len(self._made):
      raise RuntimeError(
          'Towers must make the same variables. Received: a model_fn that '
          f'makes `{name}` in tower {tower} and not in tower 0. Make '
          'variables whatever the tower.')
    variable, keys = self._made[index]
    _check_same(variable, name, kwargs, tower)
    self._taken[tower] = index + 1
    for key in keys:
      if not any(v is variable for v in tf1.get_collection(key)):
        tf1.add_to_collection(key, variable)
    return variable


def _check_same(variable: tf.Variable, name: str, kwargs: dict,
                tower: int) -> None:
  """Raises unless `tower` asks for `variable` again."""
  made = _UNIQUE_SUFFIX.sub('', variable.name.split(':')[0])
  wanted = _UNIQUE_SUFFIX.sub('', name.rstrip('/'))
  shape = kwargs.get('shape')
  same = made.split('/')[-1] == wanted.split('/')[-1] and (
      shape is None or variable.shape.is_compatible_with(shape))
  if not same:
    raise RuntimeError(
        f'Towers must make the same variables in the same order. Received: '
        f'`{variable.name}` of shape {variable.shape} in tower 0, `{name}` of '
        f'shape {shape} in tower {tower}. Make variables whatever the tower.')
