# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replacement of TensorFlow's modules for TPU embeddings and workers' shutdown.

TensorFlow has removed them, but Estimator imports them in every program.
TPUEstimator makes `GracefulShutdownHook(ResetComputation())` in each training
on TPUs. Every other name exists here and raises an error when it is called.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

tf1 = tf.compat.v1


class ResetComputation:
  """The default shutdown mode of TPUEstimator."""


class GracefulShutdownHook(tf1.train.SessionRunHook):
  """Warns that a preempted worker ends the training without a checkpoint."""

  def __init__(self, checkpoint_prefix: str, saver: Any = None,
               on_shutdown_hooks: Any = None):
    del checkpoint_prefix, saver, on_shutdown_hooks
    tf1.logging.warning(
        'TensorFlow %s has no graceful shutdown of TPU workers: a preempted '
        'one ends this training without a last checkpoint. '
        'TF_TPU_GRACEFUL_SHUTDOWN_MODE= (empty) silences this.', tf.__version__)


class _Refused:
  """A class whose instances cannot be made; Estimator tests for instances."""

  def __init__(self, *args, **kwargs):
    del args, kwargs
    raise NotImplementedError(
        f'TPUEstimator has no `{type(self).__name__}` beside TensorFlow '
        f'{tf.__version__}, which dropped TPU embeddings and the shutdown of '
        'TPU workers. Leave out `embedding_config_spec` and use '
        '`tf.feature_column.embedding_column`; unset '
        'TF_TPU_GRACEFUL_SHUTDOWN_MODE and TF_TPU_WATCHDOG_TIMEOUT; or install '
        'TensorFlow 2.15.')


@functools.cache
def __getattr__(name: str):
  if name.startswith('__'):
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  return type(name, (_Refused,), {})
