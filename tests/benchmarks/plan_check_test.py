# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The errors of the plan with several servers follow from the results."""
# BUILD data: //:docs
# BUILD data: //benchmarks:results

import numpy as np
import pytest

from benchmarks.network import cells
from benchmarks.network import plan_check


def _rate(results, name):
  return np.median(np.mean(
      results['links']['100 Mbit/s'][name]['steps_per_sec'], axis=1))


@pytest.mark.parametrize('name, messages', [
    # 4 workers fill the link of the server that has the larger kernel; a ring
    # of 4 sends 2 * 3 / 4 of the model.
    ('elastic, period 1, plain', 4 * cells.LARGEST_PART),
    ('cross shard', 1.5)])
def test_the_plan_is_near_by_hand(name, messages):
  results = plan_check.PART.read()
  message = results['model_bytes'] / (100e6 / 8 * 1448 / 1514)
  secs = messages * message
  if name == 'cross shard':
    secs += 1 / _rate(results, cells.LOCAL)
  assert 1 / secs == pytest.approx(_rate(results, name), rel=0.02)


def test_the_table_of_the_page_is_that_of_the_results():
  part = plan_check.PART
  text = part.page.read_text(encoding='utf-8')
  assert part.written(text, part.read()) == text
  row = next(line for line in part.section(part.read()).splitlines()
             if line.startswith('| elastic, period 1, plain | +'))
  assert float(row.split('|')[2].strip(' +%')) < 2
