# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The result of a run, read from its files; its table and its curves."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import sys
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfplugin.bin import models
from tfplugin.bin import options as options_lib
from tfplugin.bin import run_files
from tfplugin.bin.processes import run_summary
from tfplugin.bin.processes import task_states
from tfplugin.events import record
from tfplugin.report.reading import scalars

# The directory to which Estimator writes the summaries of an evaluation.
_EVALUATION = 'eval'


@dataclasses.dataclass(frozen=True)
class Result:
  """The result of a run.

  Attributes:
    accuracy: On the held-out rows at the end; None without an evaluation.
    first_step: The global step at which the run began.
    wall_secs: The duration, with the start of the processes.
    roles: The last status of each role, by name; None without a step.
    start_secs: From the start to the first step of each role, by name.
    lost: The end of each task that the run continued without, by name.
    files: The paths of the files, and the command of TensorBoard, by kind.
  """

  title: str
  accuracy: float | None
  first_step: int
  last_step: int
  wall_secs: float
  roles: Mapping[str, record.Sample | None]
  start_secs: Mapping[str, float]
  lost: Mapping[str, str]
  restarts: Mapping[str, int]
  figures: Mapping[str, float]
  files: Mapping[str, str]


def read_result(options: options_lib.TrainOptions,
                roles: Mapping[str, record.Sample | None],
                summary: Sequence[run_summary.TaskSummary], start: float,
                wall_secs: float, first_step: int) -> Result:
  """Returns the result of a run that has ended, and draws its curves."""
  known = [s for s in roles.values() if s is not None]
  last_step = run_files.global_step(options.model_dir)
  return Result(
      title=options.title,
      accuracy=_accuracy(options, first_step, last_step),
      first_step=first_step,
      last_step=last_step,
      wall_secs=wall_secs,
      roles=roles,
      start_secs={name: s.first_time - start
                  for name, s in roles.items() if s is not None},
      lost={t.task: t.reasons[-1] for t in summary if t.status == 'lost'},
      restarts={t.task: t.restarts for t in summary},
      figures={**task_states.combine(known), **_norms(options)},
      files={
          'checkpoint': tf.train.latest_checkpoint(options.model_dir),
          'TensorBoard': '{} --logdir {}'.format(_command_of(
              'tensorboard', 'tensorboard.main'), options.model_dir),
          'report': '{} {}'.format(_command_of(
              'tfplugin-report', 'tfplugin.bin.report'), options.model_dir),
          'logs': str(run_files.log_dir(options.model_dir)),
          'summary': str(run_summary.path_in(options.model_dir)),
          'curves': str(draw_curves(options.model_dir, options.title)),
      })


def _command_of(script: str, module: str) -> str:
  """Returns how a user who called this program calls another one.

  In a clone the scripts are not installed, and programs are called as modules.
  """
  spec = getattr(sys.modules['__main__'], '__spec__', None)
  if not spec or not spec.name.startswith('tfplugin.'):
    return script
  python = sys.executable.removeprefix(f'{os.getcwd()}/')
  return f'{python} -m {module}'


def rows(result: Result) -> list[tuple[str, str]]:
  """Returns the table's rows, each a name and a value."""
  accuracy = ('not evaluated' if result.accuracy is None
              else f'{result.accuracy:.2%} of the held-out rows')
  steps = f'{result.last_step}'
  if result.first_step:
    steps += f' (resumed at {result.first_step})'
  table = [('accuracy', accuracy), ('global step', steps),
           ('wall time', f'{result.wall_secs:.1f} s')]
  for name, last in result.roles.items():
    table.append((name, _role(name, last, result)))
  table += [(name, _outcome(name, result)) for name in result.restarts
            if name not in result.roles and _outcome(name, result)]
  table += [(name, f'{value:.6g}') for name, value in result.figures.items()]
  return table


def show(result: Result) -> None:
  """Prints the table and the paths of the files."""
  # Imported late: `rich` is an extra.
  from rich import console
  from rich import table as table_lib
  table = table_lib.Table(title=result.title, show_header=False,
                          title_justify='left')
  for row in rows(result):
    table.add_row(*row)
  terminal = console.Console()
  terminal.print(table)
  for name, path in result.files.items():
    # Paths are not broken into lines, so that users can copy them.
    terminal.print(f'{name}: {path}', soft_wrap=True, markup=False,
                   highlight=False)


def _role(name: str, last: record.Sample | None, result: Result) -> str:
  text = 'no step'
  if last is not None:
    text = f'{last.num_steps} step{"s" if last.num_steps != 1 else ""}'
  if name in result.start_secs:
    text += f', the first after {result.start_secs[name]:.1f} s'
  return '; '.join(filter(None, [text, _outcome(name, result)]))


def _outcome(name: str, result: Result) -> str:
  """Returns the restarts and the loss of a task in words; empty without any."""
  parts = []
  if result.restarts.get(name):
    count = result.restarts[name]
    parts.append(f'restarted {count} time{"s" if count != 1 else ""}')
  if name in result.lost:
    parts.append(f'lost: it {result.lost[name]}')
  return '; '.join(parts)


def _accuracy(options: options_lib.TrainOptions, first_step: int,
              last_step: int) -> float | None:
  """Returns the accuracy at the end of this run; None without an evaluation.

  Without an evaluator there may be one of an earlier run, which does not count.
  """
  curve = _curve(scalars.read_tree(options.model_dir), _EVALUATION, 'accuracy')
  end_steps = range(max(options.steps, first_step), last_step + 1)
  accuracies = [value for step, value in zip(curve.steps, curve.values)
                if step in end_steps]
  return accuracies[-1] if accuracies else None


def _norms(options: options_lib.TrainOptions) -> dict[str, float]:
  """Returns the largest row norm of each embedding table, if there are any."""
  if options.model != 'embedding':
    return {}
  reader = tf.train.load_checkpoint(options.model_dir)
  return {
      f'largest row norm of {name} (bound {options.max_norm:g})'
      if options.technique == 'clip' else
      f'largest row norm of {name}':
          float(np.linalg.norm(reader.get_tensor(name), axis=1).max())
      for name in models.EMBEDDING_TABLES
  }


def draw_curves(model_dir: str | os.PathLike, title: str) -> pathlib.Path:
  """Writes a PNG with loss and accuracy over the steps; returns its path."""
  # Imported late: matplotlib is an extra, and slow.
  from matplotlib import figure
  found = scalars.read_tree(model_dir)
  picture = figure.Figure(figsize=(10, 4), layout='constrained')
  picture.suptitle(title)
  loss_axes, accuracy_axes = picture.subplots(1, 2)
  _plot(loss_axes, _curve(found, '', 'loss'), 'training, chief', '-')
  _plot(loss_axes, _curve(found, _EVALUATION, 'loss'), 'held out', 'o-')
  loss_axes.set(xlabel='global step', ylabel='loss', yscale='log')
  loss_axes.legend()
  accuracy = _curve(found, _EVALUATION, 'accuracy')
  _plot(accuracy_axes, accuracy, 'held out', 'o-')
  accuracy_axes.set(xlabel='global step', ylabel='accuracy')
  if accuracy.steps:
    accuracy_axes.annotate(
        f'{accuracy.values[-1]:.2%}', (accuracy.steps[-1], accuracy.values[-1]),
        textcoords='offset points', xytext=(-8, -16), ha='right')
  accuracy_axes.legend(loc='lower right')
  for axes in (loss_axes, accuracy_axes):
    axes.grid(alpha=0.3)
  path = pathlib.Path(model_dir, 'curves.png')
  picture.savefig(path, dpi=120)
  return path


def _curve(found: Mapping[str, Mapping[str, scalars.Curve]], directory: str,
           tag: str) -> scalars.Curve:
  """Returns a curve of a directory; it is empty if there is none."""
  return found.get(directory, {}).get(tag, scalars.Curve([], [], []))


def _plot(axes, curve: scalars.Curve, label: str, style: str) -> None:
  axes.plot(curve.steps, curve.values, style, label=label, markersize=4)
