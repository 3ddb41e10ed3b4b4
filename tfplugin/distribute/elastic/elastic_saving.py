# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is saved: the centres, and the optimizer state of the chief."""

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
  """Everything that a Saver of the model without elastic averaging would hold.

  Args:
    pairs: The averaged variables.
    optimizer_state: The wrapped optimizer's slots and other variables.

  Returns:
    The local copies, the optimizer's state, every global variable that is not a
    centre, e.g. the global step, and the saveable objects of the graph.
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
  """Returns what to give to a Saver: centres by the names of the copies.

  A variable is recognised by identity, never by name. One that has no centre,
  and a centre itself, is saved as it is, under the name it has.

  Args:
    pairs: The averaged variables.
    var_list: Variables, whole or partitioned, or a dictionary of them by the
      names that the checkpoint is to have.

  Returns:
    A dictionary from names to variables, or to lists of the parts of one.
  """
  if not isinstance(var_list, Mapping):
    var_list = saved_names.by_name(var_list)
  centers = {pair.local.ref(): pair.center for pair in pairs}

  def swap(value):
    if isinstance(value, tf.Variable):
      return centers.get(_tf_internals.own_variable(value).ref(), value)
    return [swap(p) for p in value] if isinstance(value, Iterable) else value

  return {name: swap(value) for name, value in var_list.items()}
