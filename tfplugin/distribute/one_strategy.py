# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A strategy is not entered inside another one."""

from __future__ import annotations

import tensorflow as tf


class OneStrategy:
  """Goes in front of a strategy's class, whose scope it refuses to nest."""

  @property
  def described_as(self) -> str:
    """What messages call the strategy."""
    return type(self).__name__

  def scope(self):
    """See `tf.distribute.Strategy.scope`.

    Raises:
      RuntimeError: Called in the scope, or on a device, of another strategy.
    """
    around = tf.distribute.get_strategy()
    if tf.distribute.has_strategy() and around is not self:
      outer = getattr(around, 'described_as', type(around).__name__)
      raise RuntimeError(
          'A strategy must not be entered inside another one. Received: '
          f'{self.described_as} inside {outer}. Leave out one of the two; '
          'VariableClippingStrategy(base_strategy, ...) adds clipping to any '
          'other.')
    return super().scope()
