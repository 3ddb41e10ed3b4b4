# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is shown below the lines; tests/distributed has it on terminals."""

import io
import os
import pty
import re
import sys

import pytest
from rich import console

from tfplugin.bin.processes import task_states
from tfplugin.bin.results import live_display


def _terminal(width=80, height=20):
  return console.Console(file=io.StringIO(), force_terminal=True, width=width,
                         height=height, color_system=None)


def _states(step, count=1):
  return {f'worker:{i}': task_states.State(step=step) for i in range(count)}


def _frames(terminal):
  """Returns what was drawn, a list of lines for each time."""
  text = re.sub(r'\033\[\?25.|\033\[1A|\r', '', terminal.file.getvalue())
  return [[line.rstrip() for line in frame.split('\n')]
          for frame in re.split(r'(?:\033\[2K)+', text) if frame.strip()]


class _Clock:
  """Goes on by hand."""

  def __init__(self):
    self.now = 0.0

  def __call__(self):
    return self.now


def _show(terminal, steps, *told):
  """Shows (seconds, step) in turn."""
  terminal.get_time = clock = _Clock()
  with live_display.LiveDisplay(terminal, steps) as display:
    for clock.now, step in told:
      display.update(_states(step))
  return _frames(terminal)


def test_the_time_left_follows_from_the_speed():
  # From a checkpoint of 500 steps on, 10 a second; 400 are left in the end.
  frames = _show(_terminal(), 1000,
                 *((float(secs), 500 + 10 * secs) for secs in range(0, 11, 2)))
  bars = [frame[0] for frame in frames]
  assert re.fullmatch(r'step 500/1000 [━╸╺]+ +-:--:-- left', bars[0])
  assert re.fullmatch(r'step 600/1000 [━╸╺]+ +10.0 steps/s 0:00:40 left',
                      bars[-1])


def test_a_run_that_stands_still_has_no_time_left():
  frames = _show(_terminal(), 1000, (0, 10), (1, 20), (2, 30), (40, 30))
  assert re.fullmatch('step 30/1000 .* 10.0 steps/s 0:01:37 left',
                      frames[2][0])
  assert re.fullmatch(r'step 30/1000 [━╸╺]+ +-:--:-- left', frames[-1][0])


def test_without_an_end_the_bar_has_the_time_so_far():
  frames = _show(_terminal(), None, (75, 30))
  assert re.fullmatch('step 30 .* 0:01:15 so far', frames[-1][0])


def test_an_end_that_is_told_later_gives_the_time_left():
  terminal = _terminal()
  terminal.get_time = clock = _Clock()
  with live_display.LiveDisplay(terminal) as display:
    for step, steps in enumerate((None, 50, 50, 60)):
      clock.now = float(step)
      display.update(_states(10 * step), steps=steps)
  bars = [frame[0] for frame in _frames(terminal)]
  assert re.fullmatch('step 0 .* 0:00:00 so far', bars[0])
  assert re.fullmatch('step 10/50 .* -:--:-- left', bars[1])
  # The first that was told stays.
  assert re.fullmatch('step 30/50 .* 10.0 steps/s 0:00:02 left', bars[3])


def test_a_step_beyond_the_last_is_not_shown():
  assert 'step 100/100' in _show(_terminal(), 100, (0, 102))[-1][0]


def test_it_is_drawn_twice_a_second_but_for_the_last():
  terminal = _terminal()
  terminal.get_time = clock = _Clock()
  with live_display.LiveDisplay(terminal, 100, is_kept=True) as display:
    for step, clock.now in enumerate((0.0, 0.4, 0.5, 0.6)):
      display.update(_states(step))
    display.update(_states(50), is_last=True)
  steps = [re.match(r'step (\d+)/', frame[0]).group(1)
           for frame in _frames(terminal)]
  # And once more when it ends.
  assert steps == ['0', '2', '50', '50']


def test_many_tasks_leave_half_of_the_terminal_to_the_states():
  terminal = _terminal(height=20)
  with live_display.LiveDisplay(terminal) as display:
    display.update(_states(1, 50))
  frame = _frames(terminal)[0]
  # The bar; the heading, eight tasks and the count of the others.
  assert len(frame) == 12 and frame[-2:] == ['42 more', '']


def test_lines_are_as_they_were_said():
  terminal = _terminal(width=20)
  with live_display.LiveDisplay(terminal) as display:
    display.say()
    display.say('[bold] :smile: ' + 'x' * 30, '', '\033[31mred\033[0m 1.5')
    display.update(_states(3))
    display.say('below')
  display.update(_states(4))
  display.say('after')
  text = terminal.file.getvalue()
  # Not broken here: who copies it from the terminal gets one line.
  assert '[bold] :smile: ' + 'x' * 30 + '\n\nred 1.5\n' in text
  assert text.endswith('\033[?25hafter\n') or text.endswith('after\n')
  assert 'below\n' in text and 'worker:0    4' not in text
  assert text.index('\033[?25l') < text.index('\033[?25h') < text.index('after')


def test_lines_alone_are_said_one_by_one():
  said = []
  with live_display.Lines(said.append) as display:
    display.say('a', 'b')
    display.update(_states(3))
    display.stop()
  assert said == ['a', 'b']


@pytest.mark.parametrize('variables, is_found', [
    ({'TERM': 'xterm'}, True), ({'TERM': 'dumb'}, False),
    ({'TERM': 'unknown'}, False), (None, False)])
def test_what_a_terminal_is(monkeypatch, variables, is_found):
  ours, theirs = pty.openpty()
  read, write = os.pipe()
  for name in ('FORCE_COLOR', 'NO_COLOR'):
    monkeypatch.setenv(name, '1')
  for name, value in (variables or {'TERM': 'xterm'}).items():
    monkeypatch.setenv(name, value)
  with open(write if variables is None else theirs, 'w',
            encoding='utf-8') as stream:
    monkeypatch.setattr(sys, 'stdout', stream)
    terminal = live_display.find_terminal()
    assert (terminal is not None) == is_found
    if is_found:
      assert terminal.no_color
      assert not live_display.find_terminal(no_color=False).no_color
  for descriptor in (ours, read, theirs if variables is None else write):
    os.close(descriptor)


def test_a_terminal_of_ascii_gets_states(monkeypatch):
  ours, theirs = pty.openpty()
  monkeypatch.setenv('TERM', 'xterm')
  with open(theirs, 'w', encoding='ascii') as stream:
    monkeypatch.setattr(sys, 'stdout', stream)
    assert live_display.find_terminal() is None
  os.close(ours)
