# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Report of a run: its numbers, a page that shows them, and a trace."""

from tfplugin.report.writing import write

__all__ = ('write',)
