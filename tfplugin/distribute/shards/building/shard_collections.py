# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Graph collections, with separate lists for each shard.

A model_fn asks the graph for the losses, update ops and trainable variables so
far. With several shards in one graph, a later shard would also find the entries
of the earlier ones. So each shard works on separate lists. When all shards are
built, the graph holds the entries of every shard, without duplicates: the
variables of one device, the losses and initializers of every shard.

The lists must be edited in place, because the functions that a model_fn calls
read the graph's lists. With a graph for each shard, each shard would have
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


class ShardCollections:
  """The collections of one graph, once per shard."""

  def __init__(self, graph: tf.Graph, num_shards: int):
    """Remembers the collections of `graph` before the first shard."""
    self._graph = graph
    self._before = self._lists()
    self._shards = []
    for _ in range(num_shards):
      lists = {key: list(values) for key, values in self._before.items()}
      lists[_tf_internals.VARIABLE_STORE_KEY] = (
          _tf_internals.copy_of_variable_store())
      self._shards.append(lists)

  def show(self, shard: int) -> None:
    """Gives the graph the lists of `shard`, with the first shard's step.

    TensorFlow also looks for a step by name, and would find the first shard's.
    """
    step = tf1.GraphKeys.GLOBAL_STEP
    if step in self._shards[0]:
      self._shards[shard][step] = self._shards[0][step]
    self._set(self._shards[shard])

  def keep(self, shard: int) -> None:
    """Keeps the current lists of the graph as the lists of `shard`."""
    self._shards[shard] = self._lists()

  def join(self) -> None:
    """Gives the graph its earlier entries and the entries of all shards.

    The store of `get_variable` is the first shard's: its names lead to the
    variables that all shards share. The summaries are the first shard's, too.
    """
    joined = {key: list(values) for key, values in self._before.items()}
    for lists in self._shards[1:]:
      lists.pop(tf1.GraphKeys.SUMMARIES, None)
    for lists in self._shards:
      for key, values in lists.items():
        known = joined.setdefault(key, [])
        seen = {id(value) for value in known}
        known.extend(value for value in values if id(value) not in seen)
    store = _tf_internals.VARIABLE_STORE_KEY
    joined[store] = self._shards[0][store]
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
  """Makes `get_collection` with a scope find the entries of every shard.

  It compares the beginning of names, and a shard's names begin with the shard's
  scope. An entry is found by its name in the shard, or by the name on one
  device that `one_device` returns for the current shard.
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
