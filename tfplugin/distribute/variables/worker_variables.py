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


def create(make_value: Callable[[], Any], name: str, device: str,
           is_reference: bool = False,
           is_listed: Optional[bool] = True) -> tf.Variable:
  """Makes a variable of one worker, neither trained nor saved nor shared.

  It belongs to the graph around functions and branches. The creators of
  strategies and scopes do not affect it. `make_value` returns its value at each
  start of a session. `name` is its full name, without outer scopes. `device`
  holds regardless of outer scopes and setters; empty means the session's own.

  `is_reference` is for a variable that is assigned the value of a reference
  variable. A resource variable would share its buffer. `is_listed` puts it
  among the local variables. With False it starts beside them; with None its
  maker starts it.
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
      per_graph.current().unlisted.append(variable)
      # These initializers run wherever local variables are initialised.
      tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS,
                            variable.initializer)
    return variable
