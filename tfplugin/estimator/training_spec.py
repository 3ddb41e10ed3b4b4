# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The spec and the updates that a decorated model_fn must bring in TRAIN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin.distribute import optimizer_interception

tf1 = tf.compat.v1


def check_spec(spec: Any, decorator: str) -> None:
  """Raises unless `spec` is one to train with.

  Args:
    spec: The result of the model_fn in TRAIN.
    decorator: The name of the decorator, for the message.

  Raises:
    TypeError: `spec` is no EstimatorSpec.
    ValueError: `spec` has no loss or no train_op.
  """
  # By its parts: the spec of TPUEstimator is another class.
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
  """Returns the spec of a model_fn that is built with an interception around.

  Args:
    call: Builds the model_fn in TRAIN.
    interception: Meets its optimizers.
    decorator: The name of the decorator, for messages.
    wrapper: As for `check_applied`.

  Raises:
    TypeError: The model_fn returns no EstimatorSpec.
    ValueError: The spec has no loss or no train_op; no optimizer was met.
  """
  with interception.active():
    spec = call()
  check_spec(spec, decorator)
  check_applied(interception, decorator, wrapper)
  return spec


def check_no_strategy(decorator: str, remedy: str = '') -> None:
  """Raises inside a tf.distribute strategy.

  Args:
    decorator: The name of the decorator, for the message.
    remedy: What else to do, for the message.

  Raises:
    RuntimeError: A strategy is around.
  """
  if tf.distribute.has_strategy():
    raise RuntimeError(
        f'`{decorator}` must not be used inside a tf.distribute strategy. '
        f'Received: {tf.distribute.get_strategy()!r}. Leave out one of the '
        f'two{remedy}.')


def check_applied(interception: optimizer_interception.Interception,
                  decorator: str, wrapper: str) -> None:
  """Raises unless the model_fn applied an optimizer that was met.

  Args:
    interception: It was active around the model_fn.
    decorator: The name of the decorator, for the message.
    wrapper: An expression that makes its wrapper of an optimizer.

  Raises:
    ValueError: No optimizer was met.
  """
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
  """Returns the arguments with which a copy of `scaffold` starts `variables`.

  Without an op of its own a scaffold initialises every local variable; an
  op of the user knows the model's only.

  Args:
    scaffold: The user's, or None.
    variables: The local variables that a decorator added.

  Returns:
    Arguments for `tf.compat.v1.train.Scaffold`, none if nothing is missing.
  """
  if scaffold is None or scaffold.local_init_op is None:
    return {}
  return {'local_init_op': tf.group(
      scaffold.local_init_op, tf1.variables_initializer(variables))}
