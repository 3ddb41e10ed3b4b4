# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Early-stopping hooks of Estimator, with asynchronous strategies."""

from __future__ import annotations

import sys
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import cluster_task

_ESTIMATOR = 'tensorflow_estimator'


def mend() -> None:
  """Makes `tf.estimator.experimental.stop_if_...` accept tfplugin's strategies.

  It does nothing while Estimator is not loaded.
  """
  if _ESTIMATOR in sys.modules:
    _tf_internals.mend_early_stopping(_takes, _is_chief)


def _takes(strategy: Any) -> bool:
  """Returns whether a strategy's chief may stop without the other processes."""
  if not hasattr(strategy, 'described_as'):
    return False
  task = cluster_task.from_environment()
  # Without parameter servers, all processes of a cluster stop at the same step.
  return task.is_alone or bool(task.num_ps)


def _is_chief(config: tf.estimator.RunConfig) -> bool:
  return cluster_task.from_config(config).is_chief
