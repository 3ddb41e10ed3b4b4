# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The files that hold what was recorded."""

from __future__ import annotations

import json
import os

_HERE = os.path.dirname(os.path.abspath(__file__))


def _path(wrapper):
  return os.path.join(_HERE, wrapper + '.json')


def to_text(results):
  """Returns JSON, one line per scenario, with exact numbers."""
  lines = ['%s: %s' % (json.dumps(name), json.dumps(value, sort_keys=True))
           for name, value in sorted(_shortened(results).items())]
  return '{\n' + ',\n'.join(lines) + '\n}\n'


def _shortened(results):
  """Keeps of a message its first line, at most 70 characters of it."""
  if isinstance(results, dict):
    return {key: value.splitlines()[0][:70] if key == 'message' and value
            else _shortened(value) for key, value in results.items()}
  return results


def write(wrapper, results):
  """Writes the results of all scenarios of one wrapper."""
  with open(_path(wrapper), 'w') as file:
    file.write(to_text(results))


def same_as_file(wrapper, results):
  """Tells whether the file holds exactly these results."""
  if not os.path.exists(_path(wrapper)):
    return False
  with open(_path(wrapper)) as file:
    return file.read() == to_text(results)


def read():
  """Returns the recorded results of all wrappers by scenario name."""
  merged = {}
  for name in sorted(os.listdir(_HERE)):
    if name.endswith('.json'):
      with open(os.path.join(_HERE, name)) as file:
        merged.update(json.load(file))
  return merged
