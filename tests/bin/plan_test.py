# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The program prints what the equations say."""

from __future__ import annotations

import pytest
from absl import app
from absl.testing import flagsaver

from tfplugin.bin import plan
from tfplugin.ops import network_times

# A message takes a second.
_FLAGS = dict(model_mb=1.0, step_ms=500.0, workers=1,
              link_mbit=8 / network_times.PAYLOAD)


def _lines(capsys, **changes):
  with flagsaver.flagsaver(**{**_FLAGS, **changes}):
    plan.main(['program'])
  return capsys.readouterr().out.splitlines()


def test_a_line_for_each_wrapper_and_period(capsys):
  lines = _lines(capsys, periods=['1', '10'])
  assert len(lines) == 1 + 4 + 2 * 6 + 4
  table = {line[:58].strip(): line[58:].split() for line in lines[1:17]}
  for name in ('asynchronous SGD; drop_stale, clip', 'SyncReplicas'):
    assert table[name] == ['0.4', '20.0%']
  assert table['towers, in one process'] == ['2', '100.0%']
  # 10 steps of 1/2 s and 2 s of network; float16 1 s.
  assert table['elastic_average, period 10'] == ['1.429', '71.4%']
  assert table['elastic_average, period 10, float16'] == ['1.667', '83.3%']
  assert table['elastic_average, period 10, overlap'] == ['2', '100.0%']
  # In parts: 1 s and an eighth.
  assert table['elastic_average, period 1, overlap'] == ['0.8889', '44.4%']


def test_the_largest_variable_is_the_last_that_is_pushed(capsys):
  """A pull of 1 s, and 1 / 4 s for what is pushed after it."""
  lines = _lines(capsys, periods=['10'], largest_mb=0.25)
  rate, = (line[58:].split()[0] for line in lines
           if line[:58].strip() == 'elastic_average, period 10')
  assert rate == '1.6'  # 10 / (5 + 1.25)
  with pytest.raises(app.UsageError, match='--largest_mb .* 2.0 of 1'):
    _lines(capsys, largest_mb=2.0)


@pytest.mark.parametrize('flag, value, words', [
    ('step_ms', -4.0, 'positive'), ('link_mbit', 0.0, 'positive'),
    ('workers', 0, 'positive'), ('largest_mb', 0.0, 'positive'),
    ('model_mb', float('inf'), 'positive'), ('host_ms', -1.0, 'at least 0')])
def test_what_cannot_be_is_refused_by_its_flag(capsys, flag, value, words):
  with pytest.raises(app.UsageError, match=f'--{flag} must be {words} and fin'):
    _lines(capsys, **{flag: value})


def test_the_period_that_hides_is_named(capsys):
  lines = _lines(capsys)
  assert lines[-4:] == [
      *(f'{how}: the whole exchange is hidden from a period of {period} steps '
        'on' for how, period in (('overlap', 3), ('overlap, float16', 2),
                            ('overlap, int8', 1))),
      'without overlap: nothing is hidden']


def test_what_is_missing_is_named():
  with flagsaver.flagsaver(model_mb=1.0):
    with pytest.raises(app.UsageError, match='--step_ms, --link_mbit, --work'):
      plan.main(['program'])


def test_flags_alone_are_taken():
  with pytest.raises(app.UsageError, match='Received: 7.45'):
    plan.main(['program', '7.45'])


@pytest.mark.parametrize('period', ['0', 'ten', '1.5'])
def test_a_period_is_a_number_of_steps(capsys, period):
  with pytest.raises(app.UsageError, match=f"--periods .* '{period}'"):
    _lines(capsys, periods=[period])
