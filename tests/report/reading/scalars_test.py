# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scalars are read from event files as TensorFlow writes them."""

import pytest
import tensorflow as tf

from tests.report import hand_written
from tfplugin.report.reading import scalars

START = hand_written.START


def test_a_curve_is_in_the_order_of_the_steps_with_the_later_value(tmp_path):
  hand_written.write_scalars(tmp_path, 'loss', (1, 5, 2.0), (2, 9, 1.0),
                             (3, 1, 4.0), (4, 5, 3.0))
  assert scalars.read_tree(tmp_path) == {'': {'loss': scalars.Curve(
      [1, 5, 9], [START + 3, START + 4, START + 2], [4.0, 3.0, 1.0])}}


def test_directories_below_are_of_their_tasks(tmp_path):
  hand_written.write_scalars(tmp_path / 'worker-12', 'x', (0, 1, 0.5))
  hand_written.write_scalars(tmp_path / 'eval_digits', 'x', (0, 1, 0.25))
  hand_written.write_scalars(tmp_path, 'x', (0, 1, 1.0))
  tree = scalars.read_tree(tmp_path)
  assert sorted(tree) == ['', 'eval_digits', 'worker-12']
  assert {task: curve.values
          for task, curve in scalars.by_task(tree, 'x').items()} == {
              'chief:0': [1.0], 'worker:12': [0.5]}
  assert [scalars.is_evaluation(name) for name in sorted(tree)] == [
      False, True, False]
  assert scalars.by_task(tree, 'y') == {}


def test_scalars_of_tensorflow_2_are_read(tmp_path):
  writer = tf.summary.create_file_writer(str(tmp_path))
  with writer.as_default():
    tf.summary.scalar('loss', 0.5, step=7)
    tf.summary.text('words', 'are no scalar', step=7)
  writer.close()
  curves = scalars.read_tree(tmp_path)['']
  assert (curves['loss'].steps, curves['loss'].values) == ([7], [0.5])
  assert list(curves) == ['loss']


@pytest.mark.parametrize('cut', [1, 5, 20])
def test_a_record_that_is_cut_off_ends_the_file(tmp_path, cut):
  hand_written.write_scalars(tmp_path, 'loss', (0, 1, 4.0), (0, 2, 2.0))
  path, = tmp_path.glob('events*')
  path.write_bytes(path.read_bytes()[:-cut])
  assert scalars.read_tree(tmp_path)['']['loss'].steps == [1]
