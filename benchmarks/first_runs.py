# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The runs of docs/programs.md: their accuracy on held-out rows, and how long.

usage: python -m benchmarks.first_runs [--repeats 3]

Each row is trained as `tfplugin-train` does it, in rounds: every row once, then
every row again. The table has the medians, and the results have all.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

from benchmarks import machine
from benchmarks import page_part

# By what the page calls them: the settings of `TrainOptions`.
ROWS: Mapping[str, Mapping[str, Any]] = {
    'none: elastic averaging, chief + 1 worker': {},
    '`--wrapper=elastic_average --workers=2`': dict(
        wrapper='elastic_average', workers=2),
    '`--wrapper=drop_stale --workers=2`': dict(wrapper='drop_stale', workers=2),
    '`--wrapper=clip --workers=2`': dict(wrapper='clip', workers=2),
    'the same with `--model=embedding`': dict(
        wrapper='clip', workers=2, model='embedding'),
    '`--wrapper=towers --model=cnn`, 2 devices': dict(
        wrapper='towers', model='cnn'),
    '`--wrapper=cross_shard`, 2 devices': dict(wrapper='cross_shard'),
    '`--wrapper=none --workers=2`': dict(wrapper='none', workers=2),
}
_NORM = 'largest row norm'


def measure(settings: Mapping[str, Any]) -> dict[str, Any]:
  """Trains once; returns what came of it.

  Args:
    settings: Of `TrainOptions`, but the model_dir.
  """
  from tfplugin.bin import options
  from tfplugin.bin import train_lib
  with tempfile.TemporaryDirectory() as model_dir:
    result = train_lib.train(options.TrainOptions(model_dir, **settings))
  return {'accuracy': result.accuracy, 'wall_secs': result.wall_secs,
          'last_step': result.last_step, 'restarts': sum(
              result.restarts.values()), 'figures': dict(result.figures)}


def lines(results: page_part.Results) -> Iterator[str]:
  """Yields the lines of the table.

  Args:
    results: What `main` has written.
  """
  yield '| flags | accuracy on held-out rows | wall time |'
  yield '|---|---|---|'
  for name, every in results['rows'].items():
    yield (f'| {name} | {_accuracy(every)} | '
           f'{_median(every, "wall_secs"):.0f} s |')


def _accuracy(every: Sequence[Mapping[str, Any]]) -> str:
  cell = f'{_median(every, "accuracy"):.1%}'
  figures = [each['figures'] for each in every]
  if 'dropped' in figures[0]:
    dropped, applied = (statistics.median(each[key] for each in figures)
                        for key in ('dropped', 'applied'))
    cell += f'; {dropped:.0f} of {dropped + applied:,.0f} gradients dropped'
  norms = [norm for each in figures for name, norm in each.items()
           if name.startswith(_NORM)]
  if norms:
    cell += f' (chance: 50%); {_NORM} {max(norms):.4f}, the bound is 2'
  return cell


def _median(every: Sequence[Mapping[str, Any]], key: str) -> float:
  return statistics.median(each[key] for each in every)


PART = page_part.PagePart(
    'first_runs', '', 'Not measured yet: `python -m benchmarks.first_runs`.',
    lines, machine.ROOT / 'docs/programs.md')


def main(arguments: argparse.Namespace) -> None:
  """Measures, and writes the file and the table."""
  about = machine.about()
  rows: dict[str, list] = {name: [] for name in ROWS}
  for _ in range(arguments.repeats):
    for name, settings in ROWS.items():
      rows[name].append(measure(settings))
      sys.stdout.write(f'{name}: {rows[name][-1]}\n')
      sys.stdout.flush()
  PART.write({'about': about, 'repeats': arguments.repeats, 'rows': rows})


if __name__ == '__main__':
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--repeats', type=int, default=3)
  main(parser.parse_args())
