# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers of the report, in one section per panel."""

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

# The version of the format of report.json.
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
  """Returns the content of report.json: a section for each panel.

  Before them it has `outcome`, for the title. Each section has `missing`: its
  gaps, and the sources that would fill them.
  """
  sections = {name: section(run) for name, section in _SECTIONS.items()}
  return {'version': VERSION, 'run_dir': run.run_dir,
          'outcome': outcome.measure(run, sections['speed']), **sections}
