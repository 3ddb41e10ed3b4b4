# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Graph collections, with separate lists for each tower.

A model_fn asks the graph for the losses, update ops and trainable variables so
far. With several towers in one graph, a later tower would also find the entries
of the earlier ones. So each tower works on separate lists. When all towers are
built, the graph holds the entries of every tower, without duplicates: the
variables of one device, the losses and initializers of every tower.

The lists must be edited in place, because the functions that a model_fn calls
read the graph's lists. With a graph for each tower, each tower would have
separate variables.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Iterator
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals

tf1 = tf.compat.v1

Lists = dict[Hashable, list]


class TowerCollections:
  """The collections of one graph, once per tower."""

  def __init__(self, graph: tf.Graph, num_towers: int):
    """Remembers the collections of `graph` before the first tower."""
    self._graph = graph
    self._before = self._lists()
    self._towers = []
    for _ in range(num_towers):
      lists = {key: list(values) for key, values in self._before.items()}
      lists[_tf_internals.VARIABLE_STORE_KEY] = (
          _tf_internals.copy_of_variable_store())
      self._towers.append(lists)

  def show(self, tower: int) -> None:
    """Gives the graph the lists of `tower`, with the first tower's step.

    TensorFlow also looks for a step by name, and would find the first tower's.
    """
    step = tf1.GraphKeys.GLOBAL_STEP
    if step in self._towers[0]:
      self._towers[tower][step] = self._towers[0][step]
    self._set(self._towers[tower])

  def keep(self, tower: int) -> None:
    """Keeps the current lists of the graph as the lists of `tower`."""
    self._towers[tower] = self._lists()

  def join(self) -> None:
    """Gives the graph its earlier entries and the entries of all towers.

    The store of `get_variable` is the first tower's: its names lead to the
    variables that all towers share. The summaries are the first tower's, too.
    """
    joined = {key: list(values) for key, values in self._before.items()}
    for lists in self._towers[1:]:
      lists.pop(tf1.GraphKeys.SUMMARIES, None)
    for lists in self._towers:
      for key, values in lists.items():
        known = joined.setdefault(key, [])
        seen = {id(value) for value in known}
        known.extend(value for value in values if id(value) not in seen)
    store = _tf_internals.VARIABLE_STORE_KEY
    joined[store] = self._towers[0][store]
    self._set(joined)

  def _lists(self) -> Lists:
    keys = [*self._graph.get_all_collection_keys(),
            _tf_internals.VARIABLE_STORE_KEY]
    return {key: list(self._graph.get_collection(key)) for key in keys
            if self._graph.get_collection_ref(key)}

  def _set(self, lists: Lists) -> None:
    for key in {*self._graph.get_all_collection_keys(), *lists,
                _tf_internals.VARIABLE_STORE_KEY}:
      self._graph.get_collection_ref(key)[:] = lists.get(key, [])


@contextlib.contextmanager
def scopes_of_one_device(graph: tf.Graph,
                         one_device: Callable[[str], str]) -> Iterator[None]:
  """Makes `get_collection` with a scope find the entries of every tower.

  It compares the beginning of names, and a tower's names begin with the tower's
  scope. An entry is found by its name in the tower, or by the name on one
  device that `one_device` returns for the current tower.
  """
  get_all = graph.get_collection

  def get_collection(name: str, scope: Optional[str] = None) -> list:
    if not scope:
      return get_all(name, scope)
    matches = re.compile(scope).match
    return [value for value in get_all(name) if hasattr(value, 'name') and (
        matches(value.name) or matches(one_device(value.name)))]

  graph.get_collection = get_collection
  try:
    yield
  finally:
    del graph.get_collection
    if not inspect.ismethod(get_all):  # From an outer run.
      graph.get_collection = get_all


def keys_with(graph: tf.Graph, value: object) -> list[str]:
  """Returns the names of the collections of `graph` that hold `value`."""
  return [key for key in graph.get_all_collection_keys()
          if any(v is value for v in graph.get_collection_ref(key))]


def replace(graph: tf.Graph, old: object, new: object) -> None:
  """Replaces `old` by `new` in each collection of `graph`."""
  for key in keys_with(graph, old):
    values = graph.get_collection_ref(key)
    values[:] = [new if value is old else value for value in values]
