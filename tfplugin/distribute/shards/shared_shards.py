# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Strategy of the decorators that build shards into the graph of a model_fn."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin.distribute import refusals
from tfplugin.distribute.shards import group_assignment as groups_lib
from tfplugin.distribute.shards import shard_loss
from tfplugin.distribute.shards import shared_extended
from tfplugin.distribute.shards.building import shard_models
from tfplugin.distribute.shards.building import shard_run
from tfplugin.ops import weighted_sum

tf1 = tf.compat.v1


class SharedShards(shard_loss.ScalesLoss, refusals.NoKerasSessions,
                   tf1.distribute.Strategy, tf.distribute.Strategy):
  """Builds a function once for each shard; all share one copy of a variable.

  As on TPU each shard computes its own loss and gradients.

  Attributes:
    loss_weights: The factor of the loss and the gradients of each shard.
    group_assignment: The shards that reduce together, or None.
  """

  # TensorFlow's extended classes read it: the first of the collective keys.
  _collective_key_base = 0

  def __init__(self, devices: Sequence[str],
               loss_weights: Optional[Sequence[weighted_sum.Weight]] = None,
               shares_of_rows: Optional[Sequence[weighted_sum.Weight]] = None,
               group_assignment: groups_lib.GroupAssignment = None):
    """Makes a strategy for one graph.

    Args:
      devices: Device strings, one for each shard.
      loss_weights: The factor of the loss and the gradients of each shard; by
        default that of a mean.
      shares_of_rows: The share of each shard in the rows of the batch; by
        default all have as many.
      group_assignment: The shards that reduce together, or None.
    """
    shares = [1.0 / len(devices)] * len(devices)
    self.loss_weights = loss_weights or shares
    self.group_assignment = group_assignment
    super().__init__(shared_extended.SharedExtended(
        self, devices, shares_of_rows or shares))

  @property
  def num_replicas_in_sync(self) -> int:
    """The number of shards; inside of one, the number that divides a loss."""
    return self.divided_by_keras if shard_models.is_in_shard() else (
        self.num_shards)

  @property
  def divided_by_keras(self) -> int:
    """1: the weight of a shard divides its loss."""
    return 1

  def scaling_losses(self) -> contextlib.AbstractContextManager:
    """Lets v1 optimizers of shards minimise sums with the factor of a mean."""
    return shard_loss.minimising(
        self, lambda loss: shard_loss.with_whole_sums(loss, self.num_shards))

  def build(self, fn: Callable[[int], Any],
            batch: Optional[Sequence[Any]] = None,
            ) -> tuple[shard_run.ShardRun, list[Any]]:
    """Returns the run of the shards, and the result of `fn` in each of them.

    Args:
      fn: Called with the index of the shard, in that shard.
      batch: For each shard the tensors that it is given; None: not known.
    """
    with self.scope():
      return self.extended.build(fn, batch or [()] * self.num_shards)
