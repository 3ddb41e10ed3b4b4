# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The formulas that figures are compared with, and how far off they are.

  constant:    y = a
  linear:      y = a + b * n
  saturating:  y = n / (a + b * n), so that n / y is linear

a and b are those of the least squares of the relative deviations: the largest
size does not outweigh the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

FORMS = ('constant', 'linear', 'saturating')


class Fit(NamedTuple):
  """A formula with its numbers.

  Attributes:
    form: One of `FORMS`.
    a: See above.
    b: See above; 0 of a constant.
    error: The largest relative deviation of the formula from a figure.
  """

  form: str
  a: float
  b: float
  error: float

  def at(self, n):
    """Returns the formula's values.

    Args:
      n: A size, or an array of them.
    """
    line = self.a + self.b * np.asarray(n, float)
    return n / line if self.form == 'saturating' else line

  def text(self, size: str) -> str:
    """Returns the formula with its error.

    Args:
      size: What grows.
    """
    line = f'{self.a:.3g}'
    if self.form != 'constant':
      sign = '-' if self.b < 0 else '+'
      line += f' {sign} {abs(self.b):.3g} * {size}'
    if self.form == 'saturating':
      line = f'{size} / ({line})'
    return f'{line}; off by up to {self.error:.1%}'


def fit(form: str, sizes: Sequence[float], figures: Sequence[float]) -> Fit:
  """Returns the formula that is nearest to figures.

  Args:
    form: One of `FORMS`.
    sizes: Of which the figures are.
    figures: As many, none of them 0.

  Raises:
    ValueError: An unknown form.
  """
  if form not in FORMS:
    raise ValueError(f'`form` must be one of {FORMS}. Received: {form!r}. '
                     'Add it to `FORMS`, and here.')
  n, y = np.asarray(sizes, float), np.asarray(figures, float)
  aim = n / y if form == 'saturating' else y
  columns = [np.ones_like(n)] if form == 'constant' else [np.ones_like(n), n]
  # Columns of one size: of parameters n is 1e8.
  scales = [np.abs(column).max() for column in columns]
  found, *_ = np.linalg.lstsq(
      np.stack([c / s / aim for c, s in zip(columns, scales)], 1),
      np.ones_like(aim), rcond=None)
  a, b = (*(found / scales), 0.0)[:2]
  made = Fit(form, float(a), float(b), 0.0)
  return made._replace(error=float(np.abs(made.at(n) / y - 1).max()))
