# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Panel 8: settings, versions, the cluster, failures and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfplugin.events import last_words
from tfplugin.report.panels import panel


def draw(section: Mapping[str, Any]) -> panel.Panel:
  """Draws the section `settings` of report.json."""
  tables = [
      panel.Table(('task', 'status', 'restarts', 'why'), [
          (task, told['status'], told['restarts'],
           '; '.join(told['reasons'] or ()))
          for task, told in section['ends'].items()]),
      panel.Table(('task', 'died at, s', 'of'), [
          (d['task'], f'{d["time"]:.1f}', f'{d["error"]}: {d["message"]}')
          for d in section['deaths']]),
      panel.Table(('fault that was asked for',),
                  [(fault,) for fault in section['faults']]),
      panel.Table(('warnings of', 'times', 'text'), [
          (w['task'], w['count'], w['text']) for w in section['warnings']]),
      panel.Table(('of', 'version'), [
          (name, ', '.join(found))
          for name, found in section['versions'].items()]),
      panel.Table(('job', 'tasks'), list(section['cluster'].items())),
      panel.Table(('host', 'tasks'), [
          (host, ', '.join(tasks))
          for host, tasks in section['hosts'].items()]),
      panel.Table(('setting', 'value'), list(section['settings'].items())),
  ]
  notes = list(section['missing'])
  if section['error']:
    is_stop = section['error'].startswith(last_words.STOPPED)
    notes.insert(0, f'The run was {section["error"]}.' if is_stop else
                 f'The run did not do its work: {section["error"]}')
  if section['num_lines_of_other_versions']:
    notes.append(f'{section["num_lines_of_other_versions"]} lines of the events'
                 ' are of another version, and were passed over.')
  return panel.Panel(
      'Settings and warnings',
      'What the run was told, on what it ran, and what it said.',
      [panel.Number('events', 'settings/num_events', section['num_events'],
                    ',d'),
       panel.Number('torn lines, of killed processes',
                    'settings/num_torn_lines', section['num_torn_lines'],
                    ',d')],
      tables=[table for table in tables if table.rows], missing=notes)
