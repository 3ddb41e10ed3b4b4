# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Curves of loss and accuracy: read from the event files, and drawn."""

from __future__ import annotations

import os
import pathlib
from typing import NamedTuple
from typing import Union

import tensorflow as tf

from tfplugin.bin import run_files

tf1 = tf.compat.v1


class Curve(NamedTuple):
  """A scalar over the steps, in their order."""

  steps: list[int]
  values: list[float]


def read(directory: Union[str, os.PathLike], tag: str) -> Curve:
  """Returns the scalar summary `tag` of the event files in `directory`.

  Several runs into one directory make one curve. Where two wrote the same step,
  the later value counts. A file counts up to a last record that is cut off,
  because its writer was killed. The curve is empty if there is none.
  """
  found = {}
  for path in sorted(pathlib.Path(directory).glob('events.out.tfevents.*')):
    try:
      for event in tf1.train.summary_iterator(str(path)):
        for value in event.summary.value:
          if value.tag == tag and value.HasField('simple_value'):
            found[event.step] = value.simple_value
    except tf.errors.DataLossError:
      continue
  steps = sorted(found)
  return Curve(steps, [found[step] for step in steps])


def draw(model_dir: Union[str, os.PathLike], title: str) -> pathlib.Path:
  """Writes a PNG with loss and accuracy over the steps; returns its path."""
  # Imported late: matplotlib is an extra, and slow.
  from matplotlib import figure
  eval_dir = run_files.eval_dir(model_dir)
  picture = figure.Figure(figsize=(10, 4), layout='constrained')
  picture.suptitle(title)
  loss_axes, accuracy_axes = picture.subplots(1, 2)
  _plot(loss_axes, read(model_dir, 'loss'), 'training, chief', '-')
  _plot(loss_axes, read(eval_dir, 'loss'), 'held out', 'o-')
  loss_axes.set(xlabel='global step', ylabel='loss', yscale='log')
  loss_axes.legend()
  accuracy = read(eval_dir, 'accuracy')
  _plot(accuracy_axes, accuracy, 'held out', 'o-')
  accuracy_axes.set(xlabel='global step', ylabel='accuracy')
  if accuracy.steps:
    accuracy_axes.annotate(
        f'{accuracy.values[-1]:.2%}', (accuracy.steps[-1], accuracy.values[-1]),
        textcoords='offset points', xytext=(-8, -16), ha='right')
  accuracy_axes.legend(loc='lower right')
  for axes in (loss_axes, accuracy_axes):
    axes.grid(alpha=0.3)
  path = run_files.figure_path(model_dir)
  picture.savefig(path, dpi=120)
  return path


def _plot(axes, curve: Curve, label: str, style: str) -> None:
  axes.plot(curve.steps, curve.values, style, label=label, markersize=4)
