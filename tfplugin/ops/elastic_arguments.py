# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks of what elastic averaging is told, one function for each argument."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

import tensorflow as tf

UPDATE_ORDERS = ('gradient_first', 'elastic_first')
COUNTED_STEPS = ('communications', 'local')
STATISTICS_POLICIES = ('average', 'shared')


def check_settings(num_worker: int, communication_period: int, moving_rate, rho,
                   update_order: str, count_steps: str) -> None:
  """Raises unless all of them are what they may be; see the other checks.

  Args:
    num_worker: How many workers share the centre.
    communication_period: Local steps from one communication to the next.
    moving_rate: The share of the difference that moves, or None.
    rho: The strength of the penalty, or None.
    update_order: One of `UPDATE_ORDERS`.
    count_steps: One of `COUNTED_STEPS`.

  Raises:
    TypeError: one is of the wrong type.
    ValueError: one is out of range.
  """
  check_positive_integer('num_worker', num_worker)
  check_positive_integer('communication_period', communication_period)
  check_moving_rate(moving_rate)
  check_rho(rho)
  check_choice('update_order', update_order, UPDATE_ORDERS)
  check_choice('count_steps', count_steps, COUNTED_STEPS)


def check_positive_integer(argument: str, value: int) -> int:
  """Returns `value` as an int.

  Args:
    argument: The argument's name, for the message.
    value: What the user passed.

  Raises:
    TypeError: it is not an integer.
    ValueError: it is less than 1.
  """
  if isinstance(value, bool) or not isinstance(value, numbers.Integral):
    raise TypeError(f'`{argument}` must be an integer. Received: {value!r}. '
                    'Pass e.g. 10.')
  if value < 1:
    raise ValueError(f'`{argument}` must be at least 1. Received: {value!r}. '
                     'Pass e.g. 10.')
  return int(value)


def check_moving_rate(value) -> None:
  """Raises unless `value` is None, a tensor or a number in [0, 1].

  Args:
    value: What the user passed.

  Raises:
    TypeError: it is something else.
    ValueError: it is out of range.
  """
  if value is None or tf.is_tensor(value):
    return
  if isinstance(value, bool) or not isinstance(value, numbers.Real):
    raise TypeError('`moving_rate` must be a number or None. '
                    f'Received: {value!r}. None takes the default.')
  if not 0 <= value <= 1:
    raise ValueError('`moving_rate` must be in [0, 1]. '
                     f'Received: {value!r}. None takes the default.')


def check_rho(value) -> None:
  """Raises unless `value` is None, a tensor or a number that is not negative.

  Args:
    value: What the user passed.

  Raises:
    TypeError: it is something else.
    ValueError: it is negative or not finite.
  """
  if value is None or tf.is_tensor(value):
    return
  if isinstance(value, bool) or not isinstance(value, numbers.Real):
    raise TypeError(f'`rho` must be a number. Received: {value!r}. '
                    'Pass 0.0 for no penalty.')
  if not 0 <= value < float('inf'):
    raise ValueError('`rho` must be at least 0 and finite. '
                     f'Received: {value!r}. Pass 0.0 for no penalty.')


def check_flag(argument: str, value: bool) -> None:
  """Raises unless `value` is a bool.

  Args:
    argument: The argument's name, for the message.
    value: What the user passed.

  Raises:
    TypeError: it is something else.
  """
  if not isinstance(value, bool):
    raise TypeError(f'`{argument}` must be True or False. '
                    f'Received: {value!r}. Pass a bool.')


def check_choice(argument: str, value: str, choices: Sequence[str]) -> None:
  """Raises unless `value` is one of `choices`.

  Args:
    argument: The argument's name, for the message.
    value: What the user passed.
    choices: What it may be; the first is the default.

  Raises:
    ValueError: it is something else.
  """
  if value not in choices:
    raise ValueError(f'`{argument}` must be one of {tuple(choices)}. '
                     f'Received: {value!r}. Pass {choices[0]!r}.')
