# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the progress line, and of what a terminal has instead."""

import io
import types

from rich import console

from tfplugin.bin.processes import task_states
from tfplugin.bin.results import live_display
from tfplugin.events import record


def _status(time, step, loss, **kwargs):
  return record.Sample(time, step, loss, kwargs.get('figures', {}), 3,
                        kwargs.get('counts', {}))


def _state(*args):
  state = task_states.State()
  state.status = _status(*args)
  return state


def test_before_the_first_step():
  assert live_display.progress_line({}, 100, 0.0) == 'starting: no step yet'


def test_the_line_has_step_speed_loss_and_the_wrapper():
  statuses = {
      'chief:0': _status(5.0, 40, 0.25, counts={'dropped': 3, 'applied': 20}),
      'worker:0': _status(6.0, 39, 0.125, counts={'dropped': 1, 'applied': 19}),
  }
  assert live_display.progress_line(statuses, 100, 12.4) == (
      'step 40/100 | 12 steps/s | loss 0.1250 | dropped 4 | applied 39')


def test_a_step_beyond_the_last_is_not_shown():
  assert 'step 100/100' in live_display.progress_line(
      {'chief:0': _status(1.0, 102, 1.0)}, 100, 1.0)


def test_the_rate_is_that_since_the_line_before(capsys, monkeypatch):
  clock = [0.0]
  monkeypatch.setattr(live_display, 'time', types.SimpleNamespace(
      monotonic=lambda: clock[0]))
  with live_display.Lines(print, 9000) as shown:
    for second in range(21):
      clock[0] = float(second)
      # 10 steps a second at first, 100 from the tenth second on.
      step = 10 * second if second < 10 else 100 * (second - 9)
      shown.update({'chief:0': _state(clock[0], step, 1.0)}, {})
    shown.say('worker:0 was ended by SIGKILL')
  assert capsys.readouterr().out.splitlines() == [
      'step 100/9000 | 10 steps/s | loss 1.0000',
      'step 1100/9000 | 100 steps/s | loss 1.0000',
      'worker:0 was ended by SIGKILL']


def test_a_terminal_has_a_table_below_what_stays():
  out = io.StringIO()
  terminal = console.Console(file=out, force_terminal=True, width=60,
                             color_system=None)
  with live_display.LiveDisplay(terminal, 1000) as shown:
    shown.update({'chief:0': _state(5.0, 40, 0.25)}, {})
    shown.say('said')
  first, *_, last = out.getvalue().split('\033[2K')
  assert 'step 40/1000 ' in first
  assert 'chief:0   40         0.2500 no events yet' in first
  assert last.strip() == '\033[?25h' or not last.strip()
  assert out.getvalue().count('said\n') == 1
