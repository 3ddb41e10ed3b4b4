# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Saved variables: the centres, and the optimizer state of the chief."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Union

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.variables import saved_names

tf1 = tf.compat.v1

VarList = Union[Iterable, Mapping, None]


def all_variables(pairs: Sequence[elastic_pairs.Pair],
                  optimizer_state: Iterable[tf.Variable]) -> list:
  """Returns the variables that a Saver would hold without elastic averaging.

  These are the local copies, the optimizer's state, every global variable that
  is not a centre, e.g. the global step, and the graph's saveable objects.
  """
  averaged = [pair.local for pair in pairs]
  centers = {pair.center.ref() for pair in pairs}
  found = {variable.ref(): variable for variable in (
      *averaged, *optimizer_state, *tf1.global_variables())
      if variable.ref() not in centers}
  return [*found.values(),
          *tf1.get_collection(tf1.GraphKeys.SAVEABLE_OBJECTS)]


def swapped(pairs: Sequence[elastic_pairs.Pair],
            var_list: Union[Iterable, Mapping]) -> dict:
  """Returns the variables for a Saver, by name: centres in place of copies.

  Variables are compared by identity, never by name. A variable without a
  centre, and a centre itself, are saved under their own names. A partitioned
  variable becomes the list of its parts. The names of a mapping `var_list` are
  kept.
  """
  if not isinstance(var_list, Mapping):
    var_list = saved_names.by_name(var_list)
  centers = {pair.local.ref(): pair.center for pair in pairs}

  def swap(value):
    if isinstance(value, tf.Variable):
      return centers.get(_tf_internals.own_variable(value).ref(), value)
    return [swap(p) for p in value] if isinstance(value, Iterable) else value

  return {name: swap(value) for name, value in var_list.items()}
