# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Warnings are found in logs of absl, tf.logging and TensorFlow's core."""

from tfplugin.report.reading import logs


def test_warnings_are_counted_without_those_about_deprecation(tmp_path):
  (tmp_path / 'logs').mkdir()
  (tmp_path / 'logs/worker-1.log').write_text('''\
I1122 18:55:53.123456 1 a.py:1] fine
W1122 18:55:53.123456 139 hook.py:12] slow disk
W1122 18:55:54.123456 139 hook.py:12] slow disk
WARNING:tensorflow:From a.py: f is deprecated and will be removed
ERROR:tensorflow:no session
2026-11-22 19:02:25.422060: W tensorflow/core/x.cc:182] no GPU
    W is not the beginning of this line
''')
  assert logs.read_warnings(tmp_path) == [
      ('worker:1', 'slow disk', 2), ('worker:1', 'no session', 1),
      ('worker:1', 'no GPU', 1)]


def test_a_run_without_logs_has_no_warnings(tmp_path):
  assert logs.read_warnings(tmp_path) == []
