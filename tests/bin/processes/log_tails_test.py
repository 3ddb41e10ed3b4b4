# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what is shown of a log."""

import pytest

from tfplugin.bin.processes import log_tails


def test_the_last_twenty_lines():
  text = '\n'.join(f'line {number}' for number in range(30))
  shown = log_tails.tail(text, 'chief:0', '')
  assert shown.splitlines()[0] == 'line 10'
  assert shown.splitlines()[-1] == 'line 29'


def test_deprecation_takes_no_place_of_the_error():
  noise = ('WARNING:tensorflow:From a.py:3: f (from b) is deprecated and will '
           'be removed in a future version.\nInstructions for updating:\n'
           'Use g instead.\n') * 30
  shown = log_tails.tail(f'{noise}Traceback\nno space left\n{noise}', 'ps:0',
                         '')
  assert shown == 'Traceback\nno space left'


def test_frames_of_packages_take_no_place_of_the_programs_own():
  installed = ''.join(f'  File "/site-packages/e.py", line {line}\n    run()\n'
                      for line in range(30))
  installed += f'  File "{log_tails.__file__}", line 3\n    run()\n'
  own = ('Traceback (most recent call last):\n  File "a.py", line 3\n'
         '    train()\n')
  shown = log_tails.tail(f'step 1\n{own}{installed}NameError: no\nbye', 'ps:0',
                         '')
  assert shown == f'step 1\n{own}NameError: no\nbye'


@pytest.mark.parametrize('error', [
    'tensorflow...UnknownError: Could not start gRPC server',
    'OSError: [Errno 98] Address already in use'])
def test_an_occupied_port_is_named(error):
  shown = log_tails.tail(error, 'ps:0', '127.0.0.1:2345')
  assert 'The port of ps:0, 127.0.0.1:2345, is not free' in shown
  assert 'not free' not in log_tails.tail(error, 'evaluator:0', '')
  assert 'not free' not in log_tails.tail('other', 'ps:0', '127.0.0.1:2345')


def test_lines_of_a_program_are_not_remembered(monkeypatch):
  monkeypatch.setattr(log_tails, '_MOST_LINES', 5)
  repeats = log_tails.Repeats()
  for line in ['step'] * 9:
    assert not repeats.has(line)
  assert not repeats._rest
  assert not repeats.has('INFO:tensorflow:one')
  for line in ['step'] * 9:
    assert not repeats.has(line)
  assert len(repeats._rest) == 5
