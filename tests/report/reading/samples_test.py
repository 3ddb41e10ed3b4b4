# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What tfplugin-train tells twice a second is read."""

from tests.report import hand_written
from tfplugin.report.reading import samples


def test_lines_are_read_and_torn_ones_passed_over(tmp_path):
  hand_written.write_samples(tmp_path, 'worker:1', (1, 10, 0.5, {'a': 3.0}),
                             (2, 20, 0.25, {}))
  with open(tmp_path / 'status/worker-1.jsonl', 'a') as file:
    file.write('{"time": 3, "globa')
  lines = samples.read_all(tmp_path)['worker:1']
  assert [(s.time - hand_written.START, s.step, s.loss) for s in lines] == [
      (1.0, 10, 0.5), (2.0, 20, 0.25)]
  assert samples.figure({'worker:1': lines, 'chief:0': []}, 'a') == {
      'worker:1': [(lines[0], 3.0)]}


def test_a_run_without_them_has_none(tmp_path):
  assert samples.read_all(tmp_path) == {}
