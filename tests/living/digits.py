# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The images of digits that the programs learn from."""

from __future__ import annotations

import pathlib

import numpy as np

_FILE = pathlib.Path(__file__).absolute().parents[2] / 'testdata/digits.csv.gz'
BATCH = 128


def read():
  """Returns the pixels of 1792 images, 0 to 16, and what they show."""
  table = np.loadtxt(_FILE, delimiter=',', dtype=np.int32)[:14 * BATCH]
  return table[:, :-1], table[:, -1]
