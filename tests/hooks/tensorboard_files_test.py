# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Curves are written, or a warning says that they are not; charts have tags."""

import re
import signal
import stat

import pytest
import tensorflow as tf

from tfplugin.faults import acts
from tfplugin.hooks import tensorboard_files

tf1 = tf.compat.v1


def _put(file, step):
  file.write([tf1.Summary(value=[
      tf1.Summary.Value(tag='loss', simple_value=step)])], step)
  file.flush()


def _steps(directory):
  return [event.step for path in sorted(directory.glob('events.*'))
          for event in tf1.train.summary_iterator(str(path)) if event.step]


# The thread of TensorFlow's writer ends with the error.
@pytest.mark.filterwarnings('ignore::pytest.PytestUnhandledThreadExceptionWarning')
def test_a_full_disk_is_warned_of_once_and_writing_goes_on_later(
    behavior, tmp_path, caplog):
  del behavior
  file = tensorboard_files.CurveFile(str(tmp_path))
  _put(file, 1)
  before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
  end = acts.begin_outage('fill', 0, 60)
  try:
    _put(file, 2)
    _put(file, 3)
  finally:
    end()
    signal.signal(signal.SIGXFSZ, before)
  _put(file, 4)
  # A new file; within the second in which the old one was made, in its place.
  assert _steps(tmp_path)[-1] == 4
  assert caplog.text.count('Training continues without them.') == 1


def test_a_directory_that_cannot_be_made_is_warned_of(tmp_path, caplog):
  (tmp_path / 'a_file').touch(stat.S_IRUSR)
  file = tensorboard_files.CurveFile(str(tmp_path / 'a_file' / 'worker-0'))
  _put(file, 1)
  _put(file, 2)
  assert caplog.text.count('Training continues without them.') == 1


@pytest.mark.parametrize('tag', [
    'staleness/staleness', 'staleness', 'staleness/dropped_fraction',
    'staleness/num_dropped', 'staleness/num_applied', 'elastic_distance_1',
    'elastic/num_exchanges', 'clipping/fraction_clipped', 'global_step/sec',
    'fraction_of_rows_clipped', 'fraction_of_rows_at_the_bound', 'accuracy'])
def test_each_tag_is_in_one_chart(tag):
  charts = [name for category in tensorboard_files.LAYOUT.values()
            for name, tags in category.items()
            if any(re.fullmatch(one, tag) for one in tags)]
  assert len(charts) == 1
