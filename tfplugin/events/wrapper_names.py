# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names of the wrappers in flags, settings files and reports."""

from __future__ import annotations

WRAPPERS = ('elastic_average', 'drop_stale', 'clip', 'towers', 'cross_shard')
# Earlier spellings of the same wrappers, accepted until 2.0.
FORMER = {'tower': 'towers', 'variable_clipping': 'clip'}


def current(name: str | None) -> str | None:
  """Returns today's name of a wrapper; any other text as it is.

  Example:
    >>> current('tower')
    'towers'
  """
  return FORMER.get(name, name)
