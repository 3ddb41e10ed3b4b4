# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading curves from event files, and of the figure."""

import tensorflow as tf

from tfplugin.bin.results import curves

tf1 = tf.compat.v1


def _write(directory, tag, points):
  with tf.Graph().as_default():
    writer = tf1.summary.FileWriter(str(directory))
    for step, value in points:
      writer.add_summary(tf1.Summary(value=[
          tf1.Summary.Value(tag=tag, simple_value=value)]), step)
    writer.close()


def test_a_curve_is_in_the_order_of_the_steps(tmp_path):
  _write(tmp_path, 'loss', [(1, 4.0), (9, 1.0), (5, 2.0)])
  _write(tmp_path / 'eval', 'loss', [(3, 8.0)])
  assert curves.read(tmp_path, 'loss') == ([1, 5, 9], [4.0, 2.0, 1.0])
  assert curves.read(tmp_path, 'accuracy') == ([], [])
  assert curves.read(tmp_path / 'nowhere', 'loss') == ([], [])


def test_a_file_that_was_cut_off_counts_as_far_as_it_goes(tmp_path):
  _write(tmp_path, 'loss', [(1, 4.0), (2, 2.0)])
  path, = tmp_path.glob('events*')
  path.write_bytes(path.read_bytes()[:-3])
  assert curves.read(tmp_path, 'loss').steps == [1]


def test_the_figure_is_a_png(tmp_path):
  _write(tmp_path, 'loss', [(3, 0.5)])
  _write(tmp_path / 'eval', 'accuracy', [(3, 0.5)])
  path = curves.draw(tmp_path, 'mlp with none')
  assert path == tmp_path / 'curves.png'
  assert path.read_bytes().startswith(b'\x89PNG')


def test_a_run_without_events_has_an_empty_figure(tmp_path):
  assert curves.draw(tmp_path, 'nothing').stat().st_size > 0
