# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A logarithmic axis of a picture with plain numbers."""

from __future__ import annotations

import matplotlib.axis
from matplotlib import ticker

# More decades have room for their powers of ten only.
_DECADES_WITH_STEPS = 3


def label(axis: matplotlib.axis.Axis) -> None:
  """Labels 1, 2 and 5 of each decade: few axes have two powers of ten.

  Args:
    axis: A logarithmic one, after everything is drawn.
  """
  least, largest = axis.get_view_interval()
  few = largest / least < 10**_DECADES_WITH_STEPS
  axis.set_major_locator(
      ticker.LogLocator(subs=(1, 2, 5) if few else (1,), numticks=15))
  axis.set_major_formatter(ticker.FuncFormatter(lambda tick, _: f'{tick:,g}'))
  axis.set_minor_locator(ticker.NullLocator())
