# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scopes, collections and variables of a model that each shard builds."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.shards.building import shard_collections

tf1 = tf.compat.v1

_UNIQUE_SUFFIX = re.compile(r'_\d+(?=/|$)')


class ShardModels:
  """Gives each shard the scopes, collections and device of its model."""

  def __init__(self, devices: list[str]):
    """Stores the outer scopes; `devices` has the device of each shard."""
    self._graph = tf1.get_default_graph()
    self._devices, self._outer_devices = (
        devices, _tf_internals.device_functions())
    self._collections = shard_collections.ShardCollections(
        self._graph, len(devices))
    self._variable_scope = tf1.get_variable_scope()
    # Absolute: a name depends on the shard, not on the place of its call.
    outer = self._graph.get_name_scope()
    self._outer = f'{outer}/' if outer else ''
    self.variables = SharedVariables(len(devices))

  @contextlib.contextmanager
  def building(self) -> Iterator[None]:
    """Surrounds the building of all shards."""
    try:
      # The weight of a shard makes the mean already.
      with _tf_internals.keras_means_of_losses(is_in_shard), (
          shard_collections.scopes_of_one_device(
              self._graph, self._name_on_one_device)):
        yield
    finally:
      self._collections.join()
    self.variables.check_all_taken()

  def enter(self, shard: int, stack: contextlib.ExitStack) -> None:
    """Enters the scopes and the device of `shard`, in its replica context."""
    tf.distribute.get_replica_context().tower = shard
    if shard:
      _tf_internals.restart_layer_names()
    known = _tf_internals.device_functions()
    if not all(function in known for function in self._outer_devices):
      for function in (*self._outer_devices, self._devices[shard]):
        stack.enter_context(tf1.device(function))
    stack.enter_context(tf1.variable_scope(
        self._variable_scope, auxiliary_name_scope=False))
    stack.enter_context(tf.name_scope(self._name_scope(shard)))

  def show(self, shard: int) -> None:
    """Gives the graph the collections of `shard`."""
    self._collections.show(shard)

  def keep(self, shard: int) -> None:
    """Keeps the graph's collections as the collections of `shard`."""
    self._collections.keep(shard)

  @contextlib.contextmanager
  def together(self) -> Iterator[None]:
    """Gives the entries that all shards make once to the first one."""
    self._collections.show(0)
    yield
    self._collections.keep(0)

  def _name_scope(self, shard: int) -> str:
    """Returns the name scope of `shard`; the first one adds none."""
    return f'{self._outer}tower_{shard}/' if shard else self._outer

  def _name_on_one_device(self, name: str) -> str:
    shard = getattr(tf.distribute.get_replica_context(), 'tower', 0)
    own = self._name_scope(shard) if shard else ''
    return self._outer + name[len(own):] if own and name.startswith(own) else (
        name)


class SharedVariables:
  """Variables that the first shard made, in order, for the others."""

  def __init__(self, num_shards: int):
    """Starts empty."""
    self._made = []
    self._taken = [0] * num_shards

  def create(self, shard: int, next_creator: Callable,
             kwargs: dict[str, Any]) -> tf.Variable:
    """Returns a variable: a new one in the first shard, the same in others.

    A RuntimeError is raised if the first shard has not made it.
    """
    return self._take(shard, kwargs) if shard else self._make(
        next_creator, kwargs)

  def check_all_taken(self) -> None:
    """Raises if a shard made fewer variables than the first one."""
    for shard, count in enumerate(self._taken[1:], start=1):
      if count < len(self._made):
        name = self._made[count][0].name
        raise RuntimeError(
            'Shards must make the same variables. Received: a model_fn that '
            f'makes `{name}` in shard 0 and not in shard {shard}. Make '
            'variables whatever the shard.')

  def _make(self, next_creator: Callable, kwargs: dict) -> tf.Variable:
    variable = next_creator(**kwargs)
    keys = shard_collections.keys_with(tf1.get_default_graph(), variable)
    if tf1.GraphKeys.GLOBAL_STEP not in keys:  # The others find it there.
      self._made.append((variable, keys))
    return variable

  def _take(self, shard: int, kwargs: dict[str, Any]) -> tf.Variable:
    index = self._taken[shard]
    name = kwargs.get('name') or 'Variable'
    if index == len(self._made):
      raise RuntimeError(
          'Shards must make the same variables. Received: a model_fn that '
          f'makes `{name}` in shard {shard} and not in shard 0. Make '
          'variables whatever the shard.')
    variable, keys = self._made[index]
    _check_same(variable, name, kwargs, shard)
    self._taken[shard] = index + 1
    for key in keys:
      if not any(v is variable for v in tf1.get_collection(key)):
        tf1.add_to_collection(key, variable)
    return variable


def _check_same(variable: tf.Variable, name: str, kwargs: dict,
                shard: int) -> None:
  """Raises unless `shard` creates `variable` again."""
  made = _UNIQUE_SUFFIX.sub('', variable.name.split(':')[0])
  wanted = _UNIQUE_SUFFIX.sub('', name.rstrip('/'))
  shape = kwargs.get('shape')
  same = made.split('/')[-1] == wanted.split('/')[-1] and (
      shape is None or variable.shape.is_compatible_with(shape))
  if not same:
    raise RuntimeError(
        'Shards must make the same variables in the same order. Received: '
        f'`{variable.name}` of shape {variable.shape} in shard 0, `{name}` of '
        f'shape {shape} in shard {shard}. Make variables whatever the shard.')


def is_in_shard() -> bool:
  """Returns whether a shard with a model of its own is being built."""
  return hasattr(tf.distribute.get_replica_context(), 'tower')
