# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Takes pictures of real runs, each with a fault in it, for the site.

usage: python build_defs/run_pictures.py [RUN ...]

Without a name all of `RUNS` are made. What is in docs/pictures/runs stays, and
is not kept in the history: delete it to have it made anew. The picture of the
README is kept: delete it, too, to have another one. Without a browser nothing
is made.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

_ROOT = pathlib.Path(__file__).absolute().parents[1]
DIRECTORY = _ROOT / 'docs/pictures/runs'
README_PICTURE = _ROOT / 'docs/pictures/report.png'
_ITS_RUN = 'elastic_average'


class Run(NamedTuple):
  """A run with a fault.

  Attributes:
    panel: Of its report, what a picture is taken of.
    arguments: For tfplugin-train, beside the wrapper.
  """

  panel: str
  arguments: tuple[str, ...]


# By the wrapper. Long enough to see what there was before the fault, and after
# it, on a busy machine, too.
RUNS = {
    'elastic_average': Run('timeline', (
        '--workers=2', '--ps=2', '--steps=12000',
        '--inject=kill worker:1 at step 1000')),
    'drop_stale': Run('staleness', (
        '--workers=2', '--staleness=2', '--steps=4000',
        '--inject=slow worker:0 by 0.02 s at step 500')),
    'clip': Run('clipping', (
        '--model=embedding', '--steps=4000',
        '--inject=kill ps:0 at step 1500')),
    'towers': Run('timeline', (
        '--steps=1500', '--inject=kill chief:0 at step 700')),
    'cross_shard': Run('timeline', (
        '--steps=1500', '--inject=terminate chief:0 at step 700')),
}
# For a machine that does much else.
_LIMIT_SECS = 600.0


def command(name: str) -> str:
  """Returns the command of a run, as a user would type it."""
  return ' '.join(
      f"'{argument}'" if ' ' in argument else argument
      for argument in ('tfplugin-train', f'--wrapper={name}',
                       *RUNS[name].arguments))


def picture(name: str) -> pathlib.Path:
  """Returns where the picture of a run is, once it is made."""
  return DIRECTORY / f'{name}-{RUNS[name].panel}.png'


def _make(name: str) -> None:
  """Trains, and takes a picture of a panel of the report."""
  from tfplugin.report import pictures
  from tfplugin.report import writing
  with tempfile.TemporaryDirectory() as directory:
    done = subprocess.run(
        [sys.executable, '-m', 'tfplugin.bin.train', f'--wrapper={name}',
         f'--model_dir={directory}', '--nolive', *RUNS[name].arguments],
        cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=_LIMIT_SECS)
    if done.returncode:
      raise RuntimeError(f'`{command(name)}` failed:\n{done.stdout[-3000:]}')
    page = writing.write(directory)[writing.PAGE]
    taken, = pictures.take(page, [RUNS[name].panel]).values()
    shutil.copy(taken, picture(name))


def main(names: list[str]) -> None:
  """Makes the pictures that are missing.

  Args:
    names: Of `RUNS`; empty: all.
  """
  unknown = sorted(set(names) - set(RUNS))
  if unknown:
    raise SystemExit(
        f'`RUN` must be one of {", ".join(RUNS)}. Received: {unknown[0]}')
  sys.path.insert(0, str(_ROOT))
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
  from tfplugin.report import pictures
  try:
    pictures.browser()
  except RuntimeError as error:
    sys.stdout.write(f'No pictures of runs: {error}\n')
    return
  DIRECTORY.mkdir(exist_ok=True)
  for name in names or RUNS:
    if not picture(name).exists():
      sys.stdout.write(f'Taking pictures of: {command(name)}\n')
      sys.stdout.flush()
      _make(name)
  if not README_PICTURE.exists() and picture(_ITS_RUN).exists():
    shutil.copy(picture(_ITS_RUN), README_PICTURE)


if __name__ == '__main__':
  main(sys.argv[1:])
