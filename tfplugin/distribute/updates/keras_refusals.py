# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Refusals of Keras optimizers, in the `_update` of strategies.

Callers, each with its own reason:
  refuse_keras_update: cross shard with several groups.
  refuse_keras_step_count: drop stale, and elastic averaging that counts
    exchanges.
  refuse_keras_3_update: towers in a graph, shared shards, and elastic averaging
    within a process.

Clipping and packed parameter servers refuse none. Under a decorator
`training_spec.check_applied` refuses a Keras optimizer that is alone, and
`update_audit.py` finds its writes beside other optimizers.
"""

from __future__ import annotations

import tensorflow as tf

from tfplugin import _tf_internals


def refuse_keras_update(fn, reason: str, remedy: str) -> None:
  """Raises TypeError if `fn`, of `extended.update`, is a Keras optimizer's.

  The message has the `reason` why only v1 optimizers work, and a `remedy`.
  """
  module = _tf_internals.keras_module_of(fn)
  if module is not None:
    raise TypeError(
        f'`optimizer` must be a `tf.compat.v1.train.Optimizer`: {reason}. '
        f'Received: an update by the Keras optimizer of `{module}`. Pass e.g. '
        '`tf.compat.v1.train.AdamOptimizer(1e-3)`, use the canned estimators '
        f'of `tf.compat.v1.estimator`{remedy}.')


def refuse_keras_3_update(fn, strategy: tf.distribute.Strategy,
                          reason: str) -> None:
  """Raises TypeError if `fn`, of `extended.update`, is a Keras 3 optimizer's.

  The message has the `reason` why `strategy` cannot support it.
  """
  module = _tf_internals.keras_3_module_of(fn)
  if module is not None:
    raise TypeError(
        f'`optimizer` must not be one of Keras 3 in {strategy.described_as}: '
        f'{reason}. Received: an update by `{module}`. Pass e.g. '
        '`tf.compat.v1.train.AdamOptimizer(1e-3)`, or use `tf.keras` with '
        'tf-keras (`pip install tf-keras`, TF_USE_LEGACY_KERAS=1).')


def refuse_keras_step_count(fn, strategy: tf.distribute.Strategy,
                            remedy: str = '') -> None:
  """Raises TypeError if `fn`, of `extended.update`, is a Keras optimizer's.

  Such an optimizer advances the step, and a strategy cannot prevent that. The
  message has a `remedy`.
  """
  refuse_keras_update(
      fn, f'{strategy.described_as} decides when the global step advances',
      remedy)
