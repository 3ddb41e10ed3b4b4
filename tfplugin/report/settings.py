# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Report on settings: versions, cluster, failures and warnings. Panel 8."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any

from tfplugin.events import record
from tfplugin.report import panel
from tfplugin.report.reading import run_data

_NO_SETTINGS = ('Settings: tfplugin-train writes them into '
                'train_options.json; a program of your own does not.')


def measure(run: run_data.RunData) -> dict[str, Any]:
  """Returns the settings of a run, its cluster, and its messages."""
  events = run.reading.events
  versions = {}
  hosts = collections.defaultdict(set)
  for event in events:
    for name, version in event.details.get('versions', {}).items():
      versions.setdefault(name, set()).add(version)
    if 'host' in event.details:
      hosts[event.details['host']].add(event.task)
  return {
      'settings': dict(run.options),
      'versions': {name: sorted(found) for name, found in versions.items()},
      'cluster': collections.Counter(
          task.partition(':')[0] for task in run.events_of),
      'hosts': {host: sorted(tasks) for host, tasks in hosts.items()},
      'ends': {t['task']: {key: t.get(key) for key in
                           ('status', 'restarts', 'reasons')}
               for t in run.summary.get('tasks', ())},
      'error': run.summary.get('error'),
      'deaths': [{'task': e.task, 'time': e.time - run.start,
                  'error': e.details.get('error'),
                  'message': e.details.get('message')}
                 for e in events if e.name == 'dying'],
      'faults': [e.details.get('fault') for e in events
                 if e.name == 'injecting'],
      'warnings': list(run.warnings),
      'num_events': len(events),
      'num_torn_lines': run.reading.num_torn,
      'num_lines_of_other_versions': run.reading.num_other,
      'missing': [] if run.options else [_NO_SETTINGS],
  }


def draw(section: Mapping[str, Any]) -> panel.Panel:
  """Draws the section `settings` of report.json."""
  tables = [
      panel.Table(('task', 'status', 'restarts', 'why'), [
          (task, numbers['status'], numbers['restarts'],
           '; '.join(numbers['reasons'] or ()))
          for task, numbers in section['ends'].items()]),
      panel.Table(('task', 'failed at, s', 'error'), [
          (d['task'], f'{d["time"]:.1f}', f'{d["error"]}: {d["message"]}')
          for d in section['deaths']]),
      panel.Table(('injected fault',),
                  [(fault,) for fault in section['faults']]),
      panel.Table(('warnings of', 'times', 'text'), [
          (w['task'], w['count'], w['text']) for w in section['warnings']]),
      panel.Table(('package', 'version'), [
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
    is_stop = section['error'].startswith(record.STOPPED)
    notes.insert(0, f'The run was {section["error"]}.' if is_stop else
                 f'The run failed: {section["error"]}')
  if section['num_lines_of_other_versions']:
    notes.append(f'{section["num_lines_of_other_versions"]} lines of the '
                 'events are of another version, and were skipped.')
  return panel.Panel(
      'Settings and warnings',
      'Settings, machines and warnings of the run.',
      [panel.Number('events', 'settings/num_events', section['num_events'],
                    ',d'),
       panel.Number('incomplete lines of killed processes',
                    'settings/num_torn_lines', section['num_torn_lines'],
                    ',d')],
      tables=[table for table in tables if table.rows], missing=notes)
