# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The specs of the towers of one run, as the spec of the whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin.distribute.towers import batch_loss
from tfplugin.distribute.towers import tower_run
from tfplugin.estimator import spec_reduction
from tfplugin.estimator import streaming_metrics
from tfplugin.ops import weighted_sum


def join(mode: str, run: tower_run.TowerRun, specs: Sequence[Any],
         loss_weights: Sequence[weighted_sum.Weight],
         rows: Sequence[Any]) -> Any:
  """Returns the spec of the whole batch; in EVAL with the batch's metrics.

  Args:
    mode: A `tf.estimator.ModeKeys`.
    run: The run that built the towers.
    specs: One `tf.estimator.EstimatorSpec` per tower.
    loss_weights: The factor of each tower's loss.
    rows: The number of rows of each tower.

  Raises:
    TypeError: A tower returned something else than an EstimatorSpec.
    ValueError: Towers returned different kinds of specs.
  """
  losses = [spec.loss for spec in specs]
  shares = weighted_sum.row_shares(rows)
  metrics = None
  if mode == tf.estimator.ModeKeys.EVAL:
    metrics = streaming_metrics.chain(
        run, [spec.eval_metric_ops for spec in specs], rows)
  spec = spec_reduction.reduce_specs(mode, specs, loss_weights, metrics)
  if mode == tf.estimator.ModeKeys.TRAIN:
    run.finish_metrics(shares)
  if mode != tf.estimator.ModeKeys.PREDICT:
    batch_loss.show(losses, spec.loss)
  return spec
