# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replacement of the graceful shutdown of TPU workers.

TensorFlow has removed it. TPUEstimator makes
`GracefulShutdownHook(ResetComputation())` in each training on TPUs. It uses the
other names only if a program asks for them.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

tf1 = tf.compat.v1


def _refuse(variable: str, value: str) -> None:
  """Raises NotImplementedError about an environment variable's value."""
  raise NotImplementedError(
      f'TensorFlow {tf.__version__} can no longer shut down TPU workers. '
      f'Received: {variable}={value}. Unset it, or install TensorFlow 2.15.')


class ResetComputation:
  """The default shutdown mode of TPUEstimator."""


class ShutdownLameWorkers:
  """The mode `TF_TPU_GRACEFUL_SHUTDOWN_MODE=shutdown_worker`."""

  def __init__(self):
    _refuse('TF_TPU_GRACEFUL_SHUTDOWN_MODE', 'shutdown_worker')


class ShutdownAllWorkers:
  """The mode `TF_TPU_GRACEFUL_SHUTDOWN_MODE=shutdown_all_workers`."""

  def __init__(self):
    _refuse('TF_TPU_GRACEFUL_SHUTDOWN_MODE', 'shutdown_all_workers')


class GracefulShutdownHook(tf.compat.v1.train.SessionRunHook):
  """Warns that a preempted worker ends the training without a checkpoint."""

  def __init__(self, checkpoint_prefix: str, saver: Any = None,
               on_shutdown_hooks: Any = None):
    del checkpoint_prefix, saver, on_shutdown_hooks
    tf1.logging.warning(
        'TensorFlow %s has no graceful shutdown of TPU workers: a preempted '
        'one ends this training without a last checkpoint. '
        'TF_TPU_GRACEFUL_SHUTDOWN_MODE= (empty) silences this.', tf.__version__)


def start_worker_watchdog(session: Any, shutdown_timeout: int) -> None:
  """Raises NotImplementedError; `TF_TPU_WATCHDOG_TIMEOUT` leads to it."""
  del session
  _refuse('TF_TPU_WATCHDOG_TIMEOUT', str(shutdown_timeout))
