# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A Saver that writes centre variables under the names of the local ones."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Union

import tensorflow as tf

from tfplugin.distribute.variables import saved_names
from tfplugin.optimizers import elastic_custom_getter

tf1 = tf.compat.v1

by_name = saved_names.by_name

VarList = Union[Iterable, Mapping, None]


def all_variables(getter: elastic_custom_getter.ElasticAverageCustomGetter,
                  optimizer_state: Iterable[tf.Variable],
                 ) -> list:
  """What a Saver of the same model without elastic averaging would hold.

  Args:
    getter: Knows the averaged variables.
    optimizer_state: The wrapped optimizer's slots and other variables.

  Returns:
    The local copies, the optimizer's state, every global variable that is not a
    centre, e.g. the global step, and the saveable objects of the graph.
  """
  averaged = [pair.local for pair in getter.pairs]
  centers = {pair.center.ref() for pair in getter.pairs}
  found = {variable.ref(): variable for variable in (
      *averaged, *optimizer_state, *tf1.global_variables())
      if variable.ref() not in centers}
  return [*found.values(),
          *tf1.get_collection(tf1.GraphKeys.SAVEABLE_OBJECTS)]


def swapped(getter: elastic_custom_getter.ElasticAverageCustomGetter,
            var_list: Union[Iterable, Mapping]) -> dict:
  """Returns what to give to a Saver: centres by the names of the copies.

  A variable is recognised by identity, never by name. One that has no centre,
  and a centre itself, is saved as it is, under the name it has.

  Args:
    getter: Knows the averaged variables.
    var_list: Variables, whole or partitioned, or a dictionary of them by the
      names that the checkpoint is to have.

  Returns:
    A dictionary from names to variables, or to lists of the parts of one.

  Raises:
    RuntimeError: the model does not exist yet.
  """
  for pair in getter.model_pairs('swapping_saver()'):
    # `getter.scope()` sees the parts of a variable before they are known to be.
    elastic_custom_getter.inherit_slice(pair)
  if not isinstance(var_list, Mapping):
    var_list = by_name(var_list)
  return {name: _swap(getter, value) for name, value in var_list.items()}


def _swap(getter, value):
  if isinstance(value, tf.Variable):
    pair = getter.pair_of(value)
    return value if pair is None else pair.center
  if isinstance(value, Iterable):
    return [_swap(getter, part) for part in value]
  return value
