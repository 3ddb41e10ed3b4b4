# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel, or the source archive, from the files that Bazel declares.

usage: build_wheel.py OUT.whl|OUT.tar.gz SOURCE...
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def _copy(sources: list, tree: pathlib.Path) -> None:
  for source in sources:
    target = tree / source
    target.parent.mkdir(parents=True, exist_ok=True)
    # The content alone: Bazel hands out links, with modes of its own.
    shutil.copyfile(source, target)
    target.chmod(0o644)


def _run_setup(tree: pathlib.Path, dist: pathlib.Path, command: str) -> str:
  """Runs setup.py; returns what it printed if it failed, else nothing."""
  environ = dict(os.environ, HOME=str(tree.parent))
  environ.pop('PYTHONPATH', None)  # Bazel's; it would shadow the copies.
  done = subprocess.run(
      [sys.executable, 'setup.py', '-q', command, '-d', str(dist)],
      cwd=tree, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
      text=True, check=False)
  return done.stdout if done.returncode else ''


def main(argv: list) -> int:
  """Builds `argv[0]` from the files `argv[1:]`; returns the exit status."""
  out, sources = pathlib.Path(argv[0]), argv[1:]
  with tempfile.TemporaryDirectory() as scratch:
    tree, dist = pathlib.Path(scratch, 'tree'), pathlib.Path(scratch, 'dist')
    _copy(sources, tree)
    failure = _run_setup(
        tree, dist, 'sdist' if out.suffix == '.gz' else 'bdist_wheel')
    if failure:
      print(failure, file=sys.stderr)
      return 1
    made = [path.name for path in dist.iterdir()]
    if made != [out.name]:
      print(f'setup.py made {made}, the BUILD file declares {out.name}',
            file=sys.stderr)
      return 1
    shutil.copyfile(dist / out.name, out)
  return 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
