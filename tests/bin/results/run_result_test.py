# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the table at the end of a run."""

import os
import sys
import types

import pytest
import tensorflow as tf

from tfplugin.bin.results import run_result
from tfplugin.events import record

tf1 = tf.compat.v1


def _result(**kwargs):
  last = record.Sample(9.0, 60, 0.1, {}, 25, {}, 4.0)
  return run_result.Result(**{
      'title': 'mlp with drop_stale', 'accuracy': 0.9721, 'first_step': 0,
      'last_step': 60, 'wall_secs': 12.34,
      'roles': {'chief:0': last, 'worker:0': last, 'worker:1': None},
      'start_secs': {'chief:0': 4.0, 'worker:0': 5.25},
      'lost': {'worker:0': 'was ended by SIGKILL'},
      'restarts': {'chief:0': 1, 'worker:0': 0, 'worker:1': 0, 'ps:0': 2},
      'figures': {'dropped': 3.0}, 'files': {'logs': 'runs/a/logs'}, **kwargs})


def test_the_rows_of_a_run():
  assert run_result.rows(_result()) == [
      ('accuracy', '97.21% of the held-out rows'),
      ('global step', '60'),
      ('wall time', '12.3 s'),
      ('chief:0', '25 steps, the first after 4.0 s; restarted 1 time'),
      ('worker:0', '25 steps, the first after 5.2 s; '
       'lost: it was ended by SIGKILL'),
      ('worker:1', 'no step'),
      ('ps:0', 'restarted 2 times'),
      ('dropped', '3'),
  ]


def test_a_run_that_was_resumed_and_not_evaluated():
  rows = dict(run_result.rows(_result(accuracy=None, first_step=40)))
  assert rows['accuracy'] == 'not evaluated'
  assert rows['global step'] == '60 (resumed at 40)'


def test_what_is_printed_has_the_table_and_the_files(capsys):
  run_result.show(_result())
  printed = capsys.readouterr().out
  for text in ('mlp with drop_stale', '97.21%', 'logs: runs/a/logs'):
    assert text in printed


def _write(directory, tag, points):
  with tf.Graph().as_default():
    writer = tf1.summary.FileWriter(str(directory))
    for step, value in points:
      writer.add_summary(tf1.Summary(value=[
          tf1.Summary.Value(tag=tag, simple_value=value)]), step)
    writer.close()


def test_the_figure_is_a_png(tmp_path):
  _write(tmp_path, 'loss', [(3, 0.5)])
  _write(tmp_path / 'eval', 'accuracy', [(3, 0.5)])
  path = run_result.draw_curves(tmp_path, 'mlp with none')
  assert path == tmp_path / 'curves.png'
  assert path.read_bytes().startswith(b'\x89PNG')


def test_a_run_without_events_has_an_empty_figure(tmp_path):
  assert run_result.draw_curves(tmp_path, 'nothing').stat().st_size > 0


@pytest.mark.parametrize('name, directory, command', [
    ('tfplugin.bin.train', '/a', '.venv/bin/python -m tfplugin.bin.report'),
    ('tfplugin.bin.train', '/b', '/a/.venv/bin/python -m tfplugin.bin.report'),
    ('pytest.__main__', '/a', 'tfplugin-report')])
def test_another_program_is_called_as_this_one(
    monkeypatch, name, directory, command):
  monkeypatch.setattr(
      sys.modules['__main__'], '__spec__', types.SimpleNamespace(name=name))
  monkeypatch.setattr(sys, 'executable', '/a/.venv/bin/python')
  monkeypatch.setattr(os, 'getcwd', lambda: directory)
  assert run_result._command_of(
      'tfplugin-report', 'tfplugin.bin.report') == command
