# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scopes, collections, variables and mean losses of each shard's model.

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
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.ops import batch_parts

tf1 = tf.compat.v1

Lists = dict[Hashable, list]

_UNIQUE_SUFFIX = re.compile(r'_\d+(?=/|$)')


class ShardModels:
  """Scopes, collections and device of the model of each shard."""

  def __init__(self, devices: list[str]):
    """Stores the outer scopes; `devices` has the device of each shard."""
    self._graph = tf1.get_default_graph()
    self._devices, self._outer_devices = (
        devices, _tf_internals.device_functions())
    self.collections = ShardCollections(self._graph, len(devices))
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
      is_in_shard = _tf_internals.is_in_shard
      with _tf_internals.keras_means_of_losses(is_in_shard), (
          _tf_internals.counts_marked(is_in_shard)), (
              scopes_of_one_device(
                  self._graph, self._name_on_one_device)):
        yield
    finally:
      self.collections.join()
    self.variables.check_all_taken()

  def enter(self, shard: int, stack: contextlib.ExitStack) -> None:
    """Enters the scopes and the device of `shard`, in its replica context."""
    tf.distribute.get_replica_context().tower = shard
    known = _tf_internals.device_functions()
    if not all(function in known for function in self._outer_devices):
      for function in (*self._outer_devices, self._devices[shard]):
        stack.enter_context(tf1.device(function))
    stack.enter_context(tf1.variable_scope(
        self._variable_scope, auxiliary_name_scope=False))
    stack.enter_context(tf.name_scope(self._name_scope(shard)))

  @contextlib.contextmanager
  def together(self) -> Iterator[None]:
    """Assigns the entries that all shards make once to the first shard."""
    self.collections.show(0)
    yield
    self.collections.keep(0)

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
    keys = keys_with(tf1.get_default_graph(), variable)
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
    """Gives the graph the lists of `shard`, with the step of the first shard.

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
    """Joins the earlier entries of the graph and the entries of all shards.

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

  def get_collection(name: str, scope: str | None = None) -> list:
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


def share_denominators(ops_by_shard: Sequence[Sequence[tf.Operation]],
                       weights: Sequence[batch_parts.Weight]) -> None:
  """Makes the mean losses of all shards divide by the common count.

  The reductions of `tf.compat.v1.losses` divide a sum by a count: of non-zero
  weights, of elements, or by a sum of weights. In a shard it is the shard's
  count n[i], and a mean of such means is not the mean of the batch. With

    n[i]  ->  weight[i] * sum{j} n[j]

  in the place of n[i], the weighted sum over shards has the value and the
  gradients of the batch. Other terms of the loss make no difference:

    sum{i} weight[i] * S[i] / (weight[i] * sum{j} n[j])  =  S / n

  In a branch, a loop or a function no shard knows the count of another one. If
  n[i] is the number of elements, it needs none: the weights of shards are their
  shares of the rows. If n[i] depends on weights of the loss, the loss is
  refused there.

  The losses were built inside `counts_marked`. `weights` are the factors of the
  shards' losses. A RuntimeError is raised if shards have different numbers of
  such losses. It is also raised for a weighted one in a branch, a loop or a
  function.
  """
  counts_by_shard = [_counts(ops) for ops in ops_by_shard]
  sizes = [len(counts) for counts in counts_by_shard]
  if len(set(sizes)) > 1:
    raise RuntimeError(
        'Shards must compute the same losses. Received: a model_fn with '
        f'{sizes} mean losses in shards 0 to {len(sizes) - 1}. Add the same '
        'losses whatever the shard.')
  for counts in zip(*counts_by_shard):
    _share_one(counts, weights)


def _counts(ops: Sequence[tf.Operation]) -> list[tf.Operation]:
  """Returns the counts of the mean losses among `ops`, in order."""
  found = []
  for op in ops:
    for inner in _tf_internals.ops_of_bodies(op):
      _check_size(inner)
    if _tf_internals.is_in_branch_or_loop(op):
      _check_size(op)
      continue
    if _tf_internals.is_count_of_mean(op):
      found.append(op)
  return found


def _check_size(op: tf.Operation) -> None:
  """Raises if `op` is the count of a mean loss, and depends on weights."""
  if not _tf_internals.is_count_of_mean(op):
    return
  for source in graph_order.upstream(
      [op], of_values=True, stop=_tf_internals.is_size):
    if not (source.inputs or _tf_internals.is_size(source)) and (
        _tf_internals.may_vary(source)):
      raise RuntimeError(
          'A mean loss with weights must be outside of `tf.cond`, '
          '`tf.while_loop` and `tf.function` in a model_fn that is built in '
          f'several shards. Received: {op.name} inside one of these. Compute '
          'the loss in every step, and let branches choose the values that it '
          'is given.')


def _share_one(counts: Sequence[tf.Operation],
               weights: Sequence[batch_parts.Weight]) -> None:
  with tf.control_dependencies(None):
    total = tf.add_n([count.inputs[0] for count in counts])
    for count, weight in zip(counts, weights):
      _tf_internals.redirect_input(
          count, 0, total * tf.cast(weight, total.dtype))
