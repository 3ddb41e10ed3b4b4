# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Takes pictures of real runs, each with a fault in it, for the site.

usage: python build_defs/run_pictures.py

What is in docs/pictures/runs stays, and is not kept in the history: delete it
to have it made anew. Without a browser nothing is made.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tempfile

_ROOT = pathlib.Path(__file__).absolute().parents[1]
DIRECTORY = _ROOT / 'docs/pictures/runs'
# What the README shows is kept, and made where it is missing.
_README_PICTURE = _ROOT / 'docs/pictures/report.png'
_ITS_RUN = 'elastic_average-timeline.png'
# Long enough to see what there was before the fault, and after it.
RUNS = {
    'elastic_average': (
        '--workers=2', '--ps=2', '--steps=6000',
        '--inject=kill worker:1 at step 2000'),
    'drop_stale': (
        '--workers=2', '--staleness=2', '--steps=4000',
        '--inject=slow worker:0 by 0.02 s at step 500'),
    'variable_clipping': (
        '--model=embedding', '--steps=4000',
        '--inject=kill ps:0 at step 1500'),
    'tower': ('--steps=1500', '--inject=kill chief:0 at step 700'),
    'cross_shard': ('--steps=1500', '--inject=terminate chief:0 at step 700'),
}
_LIMIT_SECS = 240.0


def command(name: str) -> str:
  """Returns the command of a run, as a user would type it."""
  return ' '.join(
      f"'{argument}'" if ' ' in argument else argument
      for argument in ('tfplugin-train', f'--wrapper={name}', *RUNS[name]))


def _make(name: str) -> None:
  """Trains, and takes a picture of each panel of the report."""
  with tempfile.TemporaryDirectory() as directory:
    for program, *arguments in (
        ('train', f'--wrapper={name}', f'--model_dir={directory}', '--nolive',
         *RUNS[name]),
        ('report', '--png', directory)):
      done = subprocess.run(
          [sys.executable, '-m', f'tfplugin.bin.{program}', *arguments],
          cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
          text=True, timeout=_LIMIT_SECS)
      if done.returncode:
        raise RuntimeError(f'`{command(name)}` failed:\n{done.stdout[-3000:]}')
    for picture in pathlib.Path(directory, 'report').glob('*.png'):
      shutil.copy(picture, DIRECTORY / f'{name}-{picture.name}')


def main() -> None:
  """Makes the pictures that are missing."""
  sys.path.insert(0, str(_ROOT))
  from tfplugin.report import pictures
  try:
    pictures.browser()
  except RuntimeError as error:
    sys.stdout.write(f'No pictures of runs: {error}\n')
    return
  DIRECTORY.mkdir(exist_ok=True)
  for name in RUNS:
    if not list(DIRECTORY.glob(f'{name}-*.png')):
      sys.stdout.write(f'Taking pictures of: {command(name)}\n')
      sys.stdout.flush()
      _make(name)
  if not _README_PICTURE.exists():
    shutil.copy(DIRECTORY / _ITS_RUN, _README_PICTURE)


if __name__ == '__main__':
  main()
