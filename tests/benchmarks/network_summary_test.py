# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tables of README.md are those of benchmarks/results."""
# BUILD data: //:sources
# BUILD data: //benchmarks:results

import re

import pytest

from benchmarks import page_part
from benchmarks.network import summary

_SPEED = page_part.PAGE.read_text(encoding='utf-8')


@pytest.mark.parametrize('part', summary.PARTS)
def test_readme_has_what_the_results_say(part):
  text = part.page.read_text(encoding='utf-8')
  assert part.written(text, part.read()) == text


def _cells(part):
  """The rows of a table, without its head."""
  found = re.findall(r'^\| (.*) \| ([\d.]+) \|$', part.section(part.read()),
                     re.M)
  assert len(found) == 4
  return dict(found)


def test_steps_per_second_are_those_of_the_page_of_speed():
  """From the rows and the column of the page, by its text."""
  table = _SPEED[_SPEED.index('| 1000 Mbit/s, elastic averaging'):]
  period = re.search(r'^\| period 10 \| (.*) \|$', table, re.M)[1].split(' | ')
  by_page = [re.search(rf'^\| {name} \| (.*) \|$', _SPEED[_SPEED.index(
      '| steps/s | unshaped'):], re.M)[1].split(' | ')[1]
             for name in ('asynchronous SGD', 'Horovod')]
  expected = [float(cell.split()[0]) for cell in (
      *by_page, period[0], period[5])]
  assert list(map(float, _cells(summary.PARTS[0]).values())) == [
      round(figure, 1) for figure in expected]


def test_ratios_are_those_of_the_page_of_speed():
  expected = [float(re.search(rf'^\| {name}.* step time / MirroredStrategy \| '
                              r'([\d.]+)', _SPEED, re.M)[1]) for name in (
      'towers, 2 devices, MLP', 'towers, 2 devices, CNN',
      'cross shard, 2 devices of a process, 220',
      'cross shard, 2 devices of a process, one')]
  assert list(map(float, _cells(summary.PARTS[1]).values())) == [
      round(figure, 2) for figure in expected]


def test_the_first_table_of_the_page_has_ratios_and_losses_of_the_others():
  rows = [row.split(' | ') for row in re.findall(
      r'^\| (.*) \|$', summary.PARTS[2].section(summary.PARTS[2].read()),
      re.M)[1:]]
  rates = [float(row[1]) for row in rows]
  for row, rate in zip(rows, rates):
    assert float(row[2]) == pytest.approx(rate / rates[0], abs=.1)
  of_page = [re.search(rf'^\| {name} \| ([\d.]+) ', _SPEED[_SPEED.index(
      '## The loss'):], re.M)[1] for name in ('plain', 'overlap, int8')]
  assert [row[3] for row in rows] == [
      '-', '-', *(f'{float(loss):.3f}' for loss in of_page)]
