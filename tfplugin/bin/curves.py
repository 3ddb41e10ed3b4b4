# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draws the curves of loss and accuracy."""

from __future__ import annotations

import os
import pathlib
from typing import Union

from tfplugin.bin import events
from tfplugin.bin import run_files


def draw(model_dir: Union[str, os.PathLike], title: str) -> pathlib.Path:
  """Writes a PNG with the loss and the accuracy over the global step.

  Args:
    model_dir: The Estimator's directory with its event files.
    title: What stands above the curves.

  Returns:
    The path of the file.
  """
  # Imported here: they are an extra, and slow.
  from matplotlib import figure
  eval_dir = run_files.eval_dir(model_dir)
  picture = figure.Figure(figsize=(10, 4), layout='constrained')
  picture.suptitle(title)
  loss_axes, accuracy_axes = picture.subplots(1, 2)
  _plot(loss_axes, events.read_curve(model_dir, 'loss'), 'training, chief', '-')
  _plot(loss_axes, events.read_curve(eval_dir, 'loss'), 'held out', 'o-')
  loss_axes.set(xlabel='global step', ylabel='loss', yscale='log')
  loss_axes.legend()
  accuracy = events.read_curve(eval_dir, 'accuracy')
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


def _plot(axes, curve: events.Curve, label: str, style: str) -> None:
  axes.plot(curve.steps, curve.values, style, label=label, markersize=4)
