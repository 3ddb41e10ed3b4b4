# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Section on settings: versions, the cluster, failures and warnings."""

from __future__ import annotations

import collections
from typing import Any

from tfplugin.report.reading import run_data

_NO_SETTINGS = ('Settings: tfplugin-train writes them into '
                'train_options.json; a program of your own does not.')
_NO_VERSIONS = 'Versions: these events were written before they told them.'


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
      'warnings': [warning._asdict() for warning in run.warnings],
      'num_events': len(events),
      'num_torn_lines': run.reading.num_torn,
      'num_lines_of_other_versions': run.reading.num_other,
      'missing': ([] if run.options else [_NO_SETTINGS]) +
                 ([] if versions else [_NO_VERSIONS]),
  }
