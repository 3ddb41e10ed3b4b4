# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs every benchmark of this directory, each in a process of its own.

usage: python -m benchmarks.run [NAME...]

A benchmark is a file NAME_benchmark.py. Its figures are ratios within one run,
since machines differ.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

_SUFFIX = '_benchmark.py'


def names() -> list[str]:
  """Returns the names of all benchmarks, sorted."""
  directory = pathlib.Path(__file__).parent
  return sorted(path.name[:-len(_SUFFIX)]
                for path in directory.glob(f'*{_SUFFIX}'))


def main(argv: list[str]) -> int:
  """Runs the benchmarks named in `argv`, or all; returns the exit status."""
  unknown = sorted(set(argv) - set(names()))
  if unknown:
    print(f'No such benchmark: {", ".join(unknown)}. There are: '
          f'{", ".join(names()) or "none"}.', file=sys.stderr)
    return 2
  failed = []
  for name in argv or names():
    print(f'{name}:', flush=True)
    module = f'benchmarks.{name}{_SUFFIX[:-len(".py")]}'
    if subprocess.run([sys.executable, '-m', module], check=False).returncode:
      failed.append(name)
  if failed:
    print(f'Failed: {", ".join(failed)}.', file=sys.stderr)
  return 1 if failed else 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
