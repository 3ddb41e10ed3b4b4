# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers that the first shard reports: in summaries, and under names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from absl import logging

from tfplugin import _tf_internals
from tfplugin.distribute.shards.building import shard_run
from tfplugin.distribute.shards.writes import batch_values


def show_batch_values(run: shard_run.ShardRun, group: Sequence[int],
                      loss: Any) -> None:
  """Lets the numbers that the first shard reports be those of all rows.

  Args:
    run: That of the shards, which have been built.
    group: The shards that reduce together with the first one.
    loss: The loss that the first shard returned, which is left alone.
  """
  left, own = [], run.values[0]
  gather = batch_values.rows_of(run.record, run.batch, group)
  for op in run.record.built_in(0):
    value = _tf_internals.reported_value(op)
    if value is None or op.outputs[0] is loss or (
        _tf_internals.is_in_branch_or_loop(op) or run.gradients.made(value)
        or not own.is_of_rows(value)):
      continue
    try:
      _tf_internals.redirect_input(
          op, list(op.inputs).index(value),
          own.of_all(value, gather, len(group)))
    except batch_values.UnknownValueError:
      left.append(op.name)
  if left:
    logging.warning(
        'Summaries and names of numbers that cannot be made again for the '
        'rows of all shards are those of the first of %s: %s.',
        len(run.batch), ', '.join(left))
