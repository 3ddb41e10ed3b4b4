# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of this folder, and writes what came of it.

  make living TF=2.21 ARGS=deepctr

Each library is installed into a folder of its own below build/, without what it
requires: the environment stays as it is. A program gets no help but the line
`import tfplugin`; one that fails runs again with the remedy that is known.
What is found for this TensorFlow and Python is put into testdata/living.json,
and the table of docs/estimator.md is written from that.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

from tests.living import libraries
from tests.living import table

_ROOT = pathlib.Path(__file__).absolute().parents[2]
_MARK = '{"estimators": '
_LIMIT_SECONDS = 1800


def tensorflow_version():
  """The version that is installed; importing TensorFlow takes seconds."""
  for name in ('tensorflow', 'tensorflow-cpu'):
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
      return importlib.metadata.version(name)
  raise RuntimeError('TensorFlow is not installed. Use `make living`.')


def environment():
  """Names what the programs run on."""
  python = '.'.join(platform.python_version_tuple()[:2])
  return f'TensorFlow {tensorflow_version()}, Python {python}'


def install(library, folder):
  """Installs a library; returns the error, or ''."""
  if folder.is_dir():
    return ''
  ended = subprocess.run(
      [sys.executable, '-m', 'pip', 'install', '--quiet', '--no-deps',
       '--disable-pip-version-check', '--only-binary=:all:',
       '--target', str(folder), *library.installed(tensorflow_version())],
      capture_output=True, text=True, check=False)
  return _last_line(ended.stderr) if ended.returncode else ''


def run(library, folder, remedy=''):
  """Runs the program of a library; returns what it has found."""
  program = (f'{remedy}\nimport runpy; '
             f'runpy.run_module({library.program!r}, run_name="__main__")')
  path = os.pathsep.join([str(_ROOT), str(folder)])
  variables = {name: value for name, value in os.environ.items()
               if name not in ('TF_USE_LEGACY_KERAS', 'TF_CONFIG')}
  ended = subprocess.run(
      [sys.executable, '-c', program], cwd=_ROOT, text=True, check=False,
      env={**variables, 'PYTHONPATH': path, 'TF_CPP_MIN_LOG_LEVEL': '3',
           'TF_ENABLE_ONEDNN_OPTS': '0'},
      capture_output=True, timeout=_LIMIT_SECONDS)
  found = [line for line in ended.stdout.splitlines() if line.startswith(_MARK)]
  if ended.returncode or not found:
    return {'error': _last_line(ended.stderr)}
  return json.loads(found[-1])


def examine(library, folder):
  """Installs and runs a library, with the remedy where it needs one."""
  error = install(library, folder)
  result = {'error': error} if error else run(library, folder)
  fault = libraries.fault_of(library.name, result.get('error', ''))
  if fault and fault.remedy:
    result['remedied'] = run(library, folder, fault.remedy)
  return result


def _last_line(errors):
  """The message of an error that may be followed by what threads print."""
  lines = [line for line in errors.splitlines() if line.strip()]
  named = [line for line in lines if not line.startswith((' ', 'WARNING', 'I0'))
           and 'Error' in line.partition(':')[0]
           or line.startswith('ERROR:')]
  line = (named or lines or [''])[-1].strip()
  # Nothing of the machine that this runs on.
  return re.sub(r'(/[^/ :]+)+/(?=[^/ ])', '', line)


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('names', nargs='*', help='of libraries; all by default')
  names = parser.parse_args().names
  here = environment()
  for library in libraries.LIBRARIES:
    if names and library.name not in names:
      continue
    folder = _ROOT / 'build/living' / here.replace(' ', '') / library.name
    result = examine(library, folder)
    results = table.read()
    results.setdefault(here, {})[library.name] = result
    table.write(results)
    summary = table.summary(result)
    print(f'{library.name}, {here}: {summary}')  # noqa: T201 (for make)


if __name__ == '__main__':
  main()
