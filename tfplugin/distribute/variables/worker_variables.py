# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables of one worker, which wrappers add for themselves."""

from __future__ import annotations

import functools
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import per_graph
from tfplugin.distribute import placement

tf1 = tf.compat.v1

# Variables of a graph that start beside the local ones.
UNLISTED = per_graph.PerGraph()


def create(make_value: Callable[[], Any], name: str, device: str,
           is_reference: bool = False,
           is_listed: Optional[bool] = True) -> tf.Variable:
  """Makes a variable of one worker, neither trained nor saved nor shared.

  It belongs to the graph around functions and branches; the creators of
  strategies and scopes do not see it.

  Args:
    make_value: Returns its value at each start of a session.
    name: Its full name; no scope is put before it.
    device: Where it is, whatever device scopes and setters are around it; empty
      for the session's own.
    is_reference: Whether it is assigned the value of a reference variable, with
      which a resource variable would share its buffer.
    is_listed: Whether it is among the local variables; one that is not starts
      beside them; None: its maker starts it.
  """
  make = (functools.partial(tf1.Variable, use_resource=False) if is_reference
          else _tf_internals.ResourceVariable)
  with tf.init_scope(), tf1.name_scope(None), placement.only_on(device):
    variable = make(
        initial_value=make_value(),
        trainable=False,
        collections=[tf1.GraphKeys.LOCAL_VARIABLES] if is_listed else [],
        name=name)
    if is_listed is False:
      UNLISTED.here(list).append(variable)
      # Run wherever local variables are initialised.
      tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS,
                            variable.initializer)
    return variable
