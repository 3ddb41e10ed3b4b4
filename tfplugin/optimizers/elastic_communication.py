# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a worker and the parameter servers send each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional
from typing import Union

import tensorflow as tf

from tfplugin.distribute import branching
from tfplugin.distribute import placement
from tfplugin.ops import elastic
from tfplugin.optimizers import elastic_custom_getter

tf1 = tf.compat.v1


def exchange(pair: elastic_custom_getter.CenteredVariable,
             local_center: Optional[tf.Variable], moving_rate: elastic.Rate,
             use_locking: bool) -> tf.Operation:
  """Returns the op of one variable's communication.

  The centre crosses the network once, and the difference once: twice the
  variable's size together.

  Args:
    pair: The variable.
    local_center: Takes over the centre's value from before the update, or None.
    moving_rate: The share of the difference that moves.
    use_locking: Whether the centre is updated under a lock.
  """
  with placement.only_on(pair.center.device):
    center = pair.center.read_value()
  with placement.only_on(pair.local.device):
    difference = elastic.elastic_difference(pair.local.read_value(), center,
                                            moving_rate)
    updates = [pair.local.assign_sub(difference, read_value=False)]
    if local_center is not None:
      updates.append(local_center.assign(center, read_value=False))
  # A reference variable's value may be its buffer: take it over before it
  # changes. Else nothing to wait for, which would be a message of its own.
  first = (updates[1:] if branching.is_reference(pair.center) else [])
  with tf1.control_dependencies(first), placement.only_on(pair.center.device):
    added = pair.center.assign_add(difference, use_locking=use_locking,
                                   read_value=False)
  return tf.group(added, *updates)


def exchange_if(should: Union[bool, tf.Tensor],
                pairs_and_local_centers: Sequence, moving_rate: elastic.Rate,
                use_locking: bool,
                global_step: Optional[tf.Variable]) -> tf.Tensor:
  """Runs one communication where `should` is true.

  Args:
    should: A boolean scalar, or True.
    pairs_and_local_centers: For each variable what `exchange` takes.
    moving_rate: The share of the difference that moves.
    use_locking: Whether the centre is updated under a lock.
    global_step: Advanced by a communication, or None.

  Returns:
    A tensor to depend on.
  """

  def communicate():
    updates = [exchange(pair, local_center, moving_rate, use_locking)
               for pair, local_center in pairs_and_local_centers]
    if global_step is not None:
      updates.append(advance(global_step))
    with tf1.control_dependencies(updates):
      return tf.constant(True)

  if should is True:
    return communicate()
  updated = [v for pair, local_center in pairs_and_local_centers
             for v in (pair.local, pair.center, local_center, global_step)
             if v is not None]
  return branching.cond(should, communicate, lambda: tf.constant(False),
                        updated)


def advance(global_step: tf.Variable) -> tf.Operation:
  """Returns an op that adds 1 to the step, where it is.

  Args:
    global_step: A resource or a reference variable.
  """
  with placement.only_on(global_step.device):
    return global_step.assign_add(1, use_locking=True, read_value=False)
