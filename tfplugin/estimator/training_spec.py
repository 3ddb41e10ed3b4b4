# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a decorated model_fn has to return, and to have done, in TRAIN."""

from __future__ import annotations

from typing import Any

from tfplugin.distribute import optimizer_interception


def check_spec(spec: Any, decorator: str) -> None:
  """Raises unless `spec` is one to train with.

  Args:
    spec: What the model_fn returned in TRAIN.
    decorator: The name of the decorator, for the message.

  Raises:
    TypeError: It is no EstimatorSpec.
    ValueError: It has no loss or no train_op.
  """
  # By what is used of it: the spec of TPUEstimator is another class.
  if not hasattr(spec, 'train_op') or not hasattr(spec, '_replace'):
    raise TypeError(
        f'`model_fn` below `{decorator}` must return a '
        f'`tf.estimator.EstimatorSpec`. Received: {spec!r}. Return one in '
        'every mode.')
  for field in ('loss', 'train_op'):
    if getattr(spec, field) is None:
      raise ValueError(
          f'`model_fn` below `{decorator}` must return a `{field}` in TRAIN. '
          f'Received: a spec for mode {spec.mode!r} without one. Pass `mode` '
          f'on to the spec, and `{field}` with it.')


def check_applied(interception: optimizer_interception.Interception,
                  decorator: str, wrapper: str) -> None:
  """Raises unless the model_fn applied an optimizer that was met.

  Args:
    interception: What was active around the model_fn.
    decorator: The name of the decorator, for the message.
    wrapper: An expression that makes what it wraps optimizers in.

  Raises:
    ValueError: No optimizer was met.
  """
  if interception.wrappers or interception.honoured:
    return
  raise ValueError(
      f'`model_fn` below `{decorator}` must apply gradients with a '
      '`tf.compat.v1.train.Optimizer`. Received: a train_op that none made. '
      'Keras optimizers are not supported, and an optimizer whose '
      '`apply_gradients` assigns to the variables by itself is to be wrapped '
      f'where it is made: `{wrapper}`.')
