# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Warnings about tasks that evaluate otherwise with a strategy.

A strategy rewrites `TF_CONFIG`, so `tf.estimator.train_and_evaluate` no longer
sees that a task is the only one, or a `master`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from tfplugin.distribute import cluster_config

tf1 = tf.compat.v1

ONLY_TASK = (
    '`TF_CONFIG` has a cluster of one task. With a strategy, '
    '`tf.estimator.train_and_evaluate` evaluates and exports in this task, '
    'too, and an evaluator would do the same again. '
    '`tfplugin.estimator.train_and_evaluate` leaves both to the evaluator, as '
    'without a strategy.')
MASTER = (
    '`TF_CONFIG` makes this task the `master`. With a strategy, '
    '`tf.estimator.train_and_evaluate` neither evaluates nor exports in it. '
    '`tfplugin.estimator.train_and_evaluate` does both, as without a strategy.')

# How many calls of `tfplugin.estimator.train_and_evaluate` are running.
_num_running = 0


@contextlib.contextmanager
def kept() -> Iterator[None]:
  """Turns the warnings off: tasks evaluate as without a strategy."""
  global _num_running
  _num_running += 1
  try:
    yield
  finally:
    _num_running -= 1


def warn() -> None:
  """Warns, if another task evaluates than without a strategy."""
  if _num_running or not cluster_config.is_rewritten():
    return
  if cluster_config.only_trains():
    tf1.logging.warning('%s', ONLY_TASK)
  elif cluster_config.is_master():
    tf1.logging.warning('%s', MASTER)
