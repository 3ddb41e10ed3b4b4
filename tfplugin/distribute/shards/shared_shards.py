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
  """Strategy that builds a function once per shard, with shared variables.

  As on TPU, each shard computes a separate loss and its gradients. The shards
  are CrossShardStrategy's, but a variable has one copy. So the graph of a
  worker of parameter servers can have shards, and a device can be named twice.
  """

  # TensorFlow's extended classes read it: the first of the collective keys.
  _collective_key_base = 0

  def __init__(self, devices: Sequence[str],
               loss_weights: Optional[Sequence[weighted_sum.Weight]] = None,
               shares_of_rows: Optional[Sequence[weighted_sum.Weight]] = None,
               group_assignment: groups_lib.GroupAssignment = None):
    """Makes a strategy for one graph, with a shard on each of `devices`.

    `loss_weights` are the factors of the shards' losses and gradients.
    `shares_of_rows` are the shares of the shards in the rows of the batch. Both
    default to a mean.
    """
    shares = [1.0 / len(devices)] * len(devices)
    self.loss_weights = loss_weights or shares
    self.group_assignment = group_assignment
    super().__init__(shared_extended.SharedExtended(
        self, devices, shares_of_rows or shares))

  @property
  def num_replicas_in_sync(self) -> int:
    """The number of shards; in a shard the number that divides its loss."""
    return self.divided_by_keras if shard_models.is_in_shard() else (
        self.num_shards)

  @property
  def divided_by_keras(self) -> int:
    """1: the weight of a shard divides its loss."""
    return 1

  def scaling_losses(self) -> contextlib.AbstractContextManager:
    """Makes v1 optimizers minimise means, with SUM losses multiplied."""
    return shard_loss.minimising(
        self, lambda loss: shard_loss.with_whole_sums(loss, self.num_shards))

  def build(self, fn: Callable[[int], Any],
            batch: Optional[Sequence[Any]] = None,
            ) -> tuple[shard_run.ShardRun, list[Any]]:
    """Returns the run of the shards, and the result of `fn` in each of them.

    `fn` gets the index of its shard. `batch` has the tensors of each shard.
    """
    with self.scope():
      return self.extended.build(fn, batch or [()] * self.num_shards)
