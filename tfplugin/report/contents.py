# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""All the numbers of the report."""

from __future__ import annotations

from typing import Any

from tfplugin.report.reading import run_data
from tfplugin.report.sections import clipping
from tfplugin.report.sections import elastic
from tfplugin.report.sections import losses
from tfplugin.report.sections import outcome
from tfplugin.report.sections import settings
from tfplugin.report.sections import speed
from tfplugin.report.sections import staleness
from tfplugin.report.sections import timeline
from tfplugin.report.sections import traffic

# Of report.json.
VERSION = 1

# In the order of the page.
_SECTIONS = {
    'timeline': timeline.measure,
    'speed': speed.measure,
    'staleness': staleness.measure,
    'elastic': elastic.measure,
    'losses': losses.measure,
    'traffic': traffic.measure,
    'clipping': clipping.measure,
    'settings': settings.measure,
}


def measure(run: run_data.RunData) -> dict[str, Any]:
  """Returns what report.json holds: a section for each panel.

  Before them `outcome`, for the title. Each section has `missing`: what it does
  not know, and what would write it.

  Args:
    run: What the files tell.
  """
  sections = {name: section(run) for name, section in _SECTIONS.items()}
  return {'version': VERSION, 'run_dir': run.run_dir,
          'outcome': outcome.measure(run, sections['speed']), **sections}
