# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A Compose file that runs the tasks as containers of one machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from tfplugin.bin.launches import manifests
from tfplugin.bin.launches import task_settings
from tfplugin.bin.processes import restarts
from tfplugin.distribute import cluster_config

# Factors of Kubernetes' units, which `--resources` has.
_UNITS = {'': 1.0, 'm': 1e-3, **{unit: 1000.0**(power + 1)
                                 for power, unit in enumerate('kMGTPE')},
          **{f'{unit}i': 1024.0**(power + 1)
             for power, unit in enumerate('KMGTPE')}}


def compose(starts: Sequence[task_settings.Start],
            pods: manifests.Pods) -> list[dict[str, Any]]:
  """Returns the file, with a service for each task; or raises `ValueError`."""
  if pods.claim_size:
    raise ValueError('`claim_size` has no effect with --manifest=compose, '
                     'whose volumes have no size. Received: '
                     f'{pods.claim_size!r}. Leave it out.')
  cluster: dict[str, list[str]] = {}
  for start in starts:
    if start.task.type != 'evaluator':
      cluster.setdefault(start.task.type, []).append(
          f'{_service_name(start.task)}:{manifests.PORT}')
  document = {
      'name': pods.name,
      'services': {_service_name(start.task): _service(start, cluster, pods)
                   for start in starts}}
  if pods.claim:
    document['volumes'] = {pods.claim: {}}
  return [document]


def _service_name(task: cluster_config.Task) -> str:
  """Returns a task's service, which is also its host name in the network."""
  return f'{task.type}-{task.index}'


def _service(start: task_settings.Start, cluster: Mapping[str, Sequence[str]],
             pods: manifests.Pods) -> dict[str, Any]:
  variables = {'TF_CONFIG': cluster_config.encode(cluster, start.task),
               **start.variables}
  # Compose's `always` would restart a task that has done its work, and
  # `on-failure:0` has no limit.
  is_tried_again = (pods.policy.max_restarts and
                    pods.policy.rules[start.task.type] != restarts.NEVER)
  service: dict[str, Any] = {
      'image': pods.image,
      'command': [_verbatim(word) for word in start.command],
      'environment': {name: _verbatim(value)
                      for name, value in variables.items()},
      'restart': (f'on-failure:{pods.policy.max_restarts}' if is_tried_again
                  else 'no'),
      'stop_grace_period': f'{pods.grace_secs}s'}
  if pods.claim:
    service['volumes'] = [f'{pods.claim}:{pods.mount}']
  amounts = manifests.amounts_of(pods, start.task.type)
  if amounts:
    service['deploy'] = {'resources': _resources(amounts)}
  return service


def _verbatim(text: str) -> str:
  """Returns text in which Compose substitutes no variable."""
  return text.replace('$', '$$')


def _resources(amounts: Mapping[str, str]) -> dict[str, Any]:
  limits, found = {}, {}
  for name, text in amounts.items():
    number = _number(text)
    if name == 'cpu':
      if not number:  # Compose takes 0 as no limit.
        raise ValueError('`resources` must give more than 0 CPUs. Received: '
                         f'{text!r}. Write e.g. 500m for half a CPU.')
      limits['cpus'] = f'{number:g}'
    elif name == 'memory':
      if number < 1:  # Compose takes 0 as no limit.
        raise ValueError('`resources` must give at least 1 byte of memory. '
                         f'Received: {text!r}. Write e.g. 500M for megabytes.')
      limits['memory'] = f'{number:.0f}b'
    elif name == manifests.GPU:
      if number:
        found['reservations'] = {'devices': [{
            'driver': 'nvidia', 'count': int(text),
            'capabilities': ['gpu']}]}
    else:
      raise ValueError('`resources` must be cpu, memory or gpu with '
                       f'--manifest=compose. Received: {name!r}. Leave it out.')
  return {'limits': limits, **found} if limits else found


def _number(text: str) -> float:
  """Returns an amount of Kubernetes, e.g. `500m`, as a number."""
  number, unit = re.fullmatch(r'([\d.]+)(\w*)', text).groups()
  return float(number) * _UNITS[unit]
