# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the packages that only the programs need."""

from __future__ import annotations

import importlib.util

# Imported by the modules that use them, when they are used.
_PACKAGES = ('matplotlib', 'rich')


def check_installed() -> None:
  """Raises if a package is missing, before a run that would miss it at its end.

  Raises:
    RuntimeError: one is not installed; the message says what installs it.
  """
  missing = [p for p in _PACKAGES if importlib.util.find_spec(p) is None]
  if missing:
    raise RuntimeError(
        f'The programs of tfplugin need {" and ".join(missing)}. Install it '
        "with: python -m pip install 'tfplugin[train]'")
