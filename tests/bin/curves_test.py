# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the figure."""

import tensorflow as tf

from tfplugin.bin import curves

tf1 = tf.compat.v1


def test_the_figure_is_a_png(tmp_path):
  with tf.Graph().as_default():
    for directory, tag in ((tmp_path, 'loss'), (tmp_path / 'eval', 'accuracy')):
      writer = tf1.summary.FileWriter(str(directory))
      writer.add_summary(tf1.Summary(value=[
          tf1.Summary.Value(tag=tag, simple_value=0.5)]), 3)
      writer.close()
  path = curves.draw(tmp_path, 'mlp with none')
  assert path == tmp_path / 'curves.png'
  assert path.read_bytes().startswith(b'\x89PNG')


def test_a_run_without_events_has_an_empty_figure(tmp_path):
  assert curves.draw(tmp_path, 'nothing').stat().st_size > 0
