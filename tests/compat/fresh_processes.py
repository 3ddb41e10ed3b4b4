# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs pieces of programs, each in a process that has done nothing else.

Importing TensorFlow takes seconds, and Estimator one more: a process imports
what all pieces begin with, and forks for each piece.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys

_PROGRAM = '''
import io, json, os, sys, traceback
pieces = json.load(sys.stdin)
exec(pieces.pop(0))
results = []
for piece in pieces:
  read, write = os.pipe()
  if os.fork():
    os.close(write)
    with os.fdopen(read) as pipe:
      results.append(json.loads(pipe.read() or '["", "it has died"]'))
    os.wait()
    continue
  sys.stdout, errors = io.StringIO(), ''
  try:
    exec(piece, {'__name__': '__main__'})
  except BaseException:
    errors = traceback.format_exc()
  with os.fdopen(write, 'w') as pipe:
    json.dump([sys.stdout.getvalue(), errors], pipe)
  os._exit(0)
json.dump(results, sys.stdout)
'''


@dataclasses.dataclass(frozen=True)
class Result:
  """What a piece has printed, and the error it ended with, or ''."""
  printed: str
  errors: str


def run(first, pieces, **environment):
  """Runs `first` once, then each of `pieces` in a fork of that process."""
  ended = subprocess.run(
      [sys.executable, '-c', _PROGRAM], input=json.dumps([first, *pieces]),
      env={**_environment(), **environment}, capture_output=True, text=True,
      timeout=250, check=False)
  assert ended.returncode == 0, ended.stderr
  return [Result(*result) for result in json.loads(ended.stdout)]


def _environment():
  kept = {name: value for name, value in os.environ.items()
          if name not in ('TF_USE_LEGACY_KERAS', 'TF_CONFIG')}
  return {**kept, 'TF_CPP_MIN_LOG_LEVEL': '3',
          'PYTHONPATH': os.pathsep.join(filter(None, sys.path))}
