# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The limit of a wait, checked."""

from __future__ import annotations

import math
import numbers


def check(time_limit_secs: float) -> None:
  """Raises unless a wait can have such a limit.

  Args:
    time_limit_secs: The limit in seconds, as the user passed it.

  Raises:
    TypeError: `time_limit_secs` is not a number.
    ValueError: `time_limit_secs` is not positive, or not finite.

  Example:
    >>> check(60.0)
  """
  if isinstance(time_limit_secs, bool) or not isinstance(
      time_limit_secs, numbers.Real):
    raise TypeError('`time_limit_secs` must be a number. Received: '
                    f'{time_limit_secs!r}. Pass e.g. 60.0.')
  if not 0 < time_limit_secs < math.inf:
    raise ValueError('`time_limit_secs` must be positive and finite. '
                     f'Received: {time_limit_secs!r}. Pass e.g. 60.0.')
