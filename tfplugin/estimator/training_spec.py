# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks of the spec and the updates of a decorated model_fn in TRAIN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin.distribute import optimizer_interception

tf1 = tf.compat.v1


def check_spec(spec: Any, decorator: str) -> None:
  """Raises unless `spec` is an EstimatorSpec with a loss and a train_op."""
  # By its fields: the spec of TPUEstimator is another class.
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


def intercepted(call: Callable[[], Any],
                interception: optimizer_interception.Interception,
                decorator: str, wrapper: str) -> Any:
  """Returns the spec of a model_fn that is built inside an interception."""
  with interception.active():
    spec = call()
  check_spec(spec, decorator)
  check_applied(interception, decorator, wrapper)
  return spec


def check_no_strategy(decorator: str, remedy: str = '') -> None:
  """Raises RuntimeError inside a tf.distribute strategy."""
  if tf.distribute.has_strategy():
    raise RuntimeError(
        f'`{decorator}` must not be used inside a tf.distribute strategy. '
        f'Received: {tf.distribute.get_strategy()!r}. Leave out one of the '
        f'two{remedy}.')


def check_applied(interception: optimizer_interception.Interception,
                  decorator: str, wrapper: str) -> None:
  """Raises ValueError unless an optimizer of the model_fn was intercepted."""
  if interception.wrappers or interception.honoured:
    return
  raise ValueError(
      f'`model_fn` below `{decorator}` must apply gradients with a '
      '`tf.compat.v1.train.Optimizer`. Received: a train_op of something else,'
      ' such as a Keras optimizer. Use e.g. '
      '`tf.compat.v1.train.AdamOptimizer`; wrap an optimizer that is applied '
      f'in a strategy of the model_fn where it is made: `{wrapper}`.')


def local_init_op(scaffold: Optional[tf1.train.Scaffold],
                  variables: Sequence[tf.Variable],
                  ) -> dict[str, tf.Operation]:
  """Returns arguments for a copy of `scaffold` that starts `variables` too.

  Without its own op a scaffold initialises every local variable. The op of a
  user covers only the model's, not those local variables that a decorator
  added.
  """
  if scaffold is None or scaffold.local_init_op is None:
    return {}
  return {'local_init_op': tf.group(
      scaffold.local_init_op, tf1.variables_initializer(variables))}
