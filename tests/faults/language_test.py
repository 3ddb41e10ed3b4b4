# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the little language of faults, and of its page."""
# BUILD data: //:sources

import pathlib
import re
import sys

import pytest

from tfplugin.events import process
from tfplugin.faults import language

_ROOT = pathlib.Path(__file__).absolute().parents[2]


@pytest.mark.parametrize('text, fault', [
    ('kill worker:0 at step 120', ('kill', 'worker:0', 'at step', 120, None)),
    ('terminate chief:0 before the first step',
     ('terminate', 'chief:0', 'before the first step', None, None)),
    ('stop ps:1 for 2.5 s at the end',
     ('stop', 'ps:1', 'at the end', None, 2.5)),
    ('raise worker:12 while saving',
     ('raise', 'worker:12', 'while saving', None, None)),
    ('slow chief:0 by 0.2 s at step 0', ('slow', 'chief:0', 'at step', 0, 0.2)),
    ('nan worker:0 at step 5', ('nan', 'worker:0', 'at step', 5, None)),
    ('kill chief:0 while saving after step 30',
     ('kill', 'chief:0', 'while saving', 30, None)),
    ('partition ps:0 for 5 s at step 1',
     ('partition', 'ps:0', 'at step', 1, 5.0)),
    ('slow_link ps:0 to 100 kB/s for 5 s at step 1',
     ('slow_link', 'ps:0', 'at step', 1, 5.0, 100.0)),
    ('lossy_link ps:0 of 2.5 % for 5 s at the end',
     ('lossy_link', 'ps:0', 'at the end', None, 5.0, 2.5)),
    ('clock chief:0 by -3600 s at step 1',
     ('clock', 'chief:0', 'at step', 1, -3600.0)),
    ('slow_save chief:0 by 2 s at step 9',
     ('slow_save', 'chief:0', 'at step', 9, 2.0)),
    ('new_address ps:1 while saving',
     ('new_address', 'ps:1', 'while saving', None, None)),
    ('upgrade ps:0 to /new/bin/python3.13 at step 1',
     ('upgrade', 'ps:0', 'at step', 1, None, None, '/new/bin/python3.13')),
    ('kill evaluator:0 while exchanging',
     ('kill', 'evaluator:0', 'while exchanging', None, None)),
])
def test_a_fault_comes_and_goes(text, fault):
  parsed, = language.parse(text)
  assert parsed == language.Fault(*fault)
  assert str(parsed) == text
  assert language.parse(f'  {text.replace(" ", "   ")} ') == (parsed,)


def test_several_faults():
  faults = language.parse(
      'kill worker:0 at step 1; kill worker:1 at step 2 ;'
      'raise chief:0 at the end')
  assert [str(fault) for fault in faults] == [
      'kill worker:0 at step 1', 'kill worker:1 at step 2',
      'raise chief:0 at the end']


# ^ is below the first letter that is wrong.
@pytest.mark.parametrize('text, place, expected', [
    ('hurt worker:0 at step 1',
     '^', 'kill, terminate, stop, cut, fill, raise, slow, nan, damage, '
     'partition, slow_link, lossy_link, clock, readonly, slow_save, '
     'new_address or upgrade'),
    ('', '^', 'kill, terminate'),
    ('kill', '     ^', 'a task: one of chief, worker, ps or evaluator'),
    ('kill boss:0 at step 1', '     ^', 'a task'),
    ('kill worker at step 1', '     ^', 'a task'),
    ('kill worker:0', '              ^', '"before the first step", "at step"'),
    ('kill worker:0 at stp 120', '              ^', '"at step"'),
    ('kill worker:0 at step', '                      ^', 'a number'),
    ('kill worker:0 at step -1', '                      ^', 'a number'),
    ('kill worker:0 at step 1 kill ps:0 at step 2',
     '                        ^', '";" or the end'),
    ('kill worker:0 while saving after step x',
     '                                      ^', 'a number'),
    ('stop worker:0 at step 1', '              ^', '"for" and seconds'),
    ('stop worker:0 for ever s at step 1',
     '                  ^', 'a number of seconds'),
    ('stop worker:0 for 5 at step 1', '                    ^', '"s"'),
    ('slow_link ps:0 for 5 s at step 1',
     '               ^', '"to" and kilobytes per second, as "to 5 kB/s"'),
    ('slow_link ps:0 to 5 s', '                    ^', '"kB/s"'),
    ('new_address worker:0 at step 1', '            ^', "can have 'new_add"),
    ('upgrade ps:0 at step 1', '             ^',
     '"to" and the path of a Python, as "to new/bin/python"'),
    ('upgrade ps:0 to', '                ^', 'the path of a Python'),
    ('raise worker:0 while exchanging',
     '               ^', '"at the end", "while saving"'),
    ('nan chief:0 while saving', '            ^', '"at step"'),
    ('raise ps:0 at step 1', '      ^', "can have 'raise': chief or worker"),
    ('damage worker:0 at step 1', '       ^', "can have 'damage': chief"),
    ('fill ps:0 at step 1', '          ^', '"for" and seconds'),
    ('kill worker:0 at the end; kill ps:0 at',
     '                                    ^', '"at step"'),
    ('kill worker:0 at the end; ', '                          ^', 'kill'),
])
def test_an_error_shows_the_place(text, place, expected):
  with pytest.raises(ValueError) as refused:
    language.parse(text)
  first, shown, below = str(refused.value).splitlines()
  assert first == (
      'A fault must be like "kill worker:0 at step 120". Received:')
  assert shown == f'  {text}'
  assert below.startswith(f'  {place} expected ')
  assert expected in below


def test_the_page_has_the_kinds_and_phases():
  page = (_ROOT / 'docs/faults.md').read_text(encoding='utf-8')
  kinds, phases = (
      re.findall(r'^\| `([^|]*)`', table, re.M) for table in (
          page.partition('| kind')[2].partition('\n\n')[0],
          page.partition('| phase')[2].partition('\n\n')[0]))
  assert [kind.split('`')[0] for kind in kinds] == list(language.KINDS)
  assert tuple(phase.replace(' 120', '') for phase in phases) == language.PHASES
  # Each example is of the language.
  for text in re.findall(r"--inject='([^']*)'", page):
    language.parse(text)


def test_variables_come_back(monkeypatch):
  variables = language.variables('kill worker:0 at step 3')
  for name, value in variables.items():
    monkeypatch.setenv(name, value)
  faults, run = language.read_environment()
  assert faults == language.parse('kill worker:0 at step 3')
  assert run == variables[language.RUN_VARIABLE]
  # Another run is another one.
  assert language.variables('kill worker:0 at step 3') != variables


def test_no_faults_are_no_variables(monkeypatch):
  assert language.variables(' ') == {}
  monkeypatch.delenv(process.FAULTS_VARIABLE, raising=False)
  assert language.read_environment()[0] == ()


def test_an_upgraded_task_restarts_with_the_other_python():
  faults = ('kill ps:0 at step 1; '
            f'upgrade worker:1 to {sys.executable} at step 2')
  command = ['/old/bin/python3.11', '-u', 'program.py']
  assert language.restart_command(command, 'worker:1', faults) == [
      sys.executable, '-u', 'program.py']
  for task, text in (('worker:0', faults), ('worker:1', '')):
    assert language.restart_command(command, task, text) == command
  with pytest.raises(ValueError, match='begins with a Python. Received: sh,'):
    language.restart_command(['sh'], 'worker:1', faults)
  with pytest.raises(ValueError, match='no such program: /no/python'):
    language.restart_command(command, 'ps:0',
                             'upgrade ps:0 to /no/python at the end')


def test_a_bad_text_is_refused_before_anything_starts():
  with pytest.raises(ValueError, match='A fault must be like'):
    language.variables('kill them')


@pytest.mark.parametrize('task', ['worker:2', 'ps:1', 'evaluator:0', 'chief:1'])
def test_a_task_that_the_run_does_not_have_is_refused(task):
  language.check_tasks('', 0, 0, False)
  language.check_tasks('kill chief:0 at step 1; kill worker:1 at step 1; '
                       'kill ps:0 at step 1', 2, 1, False)
  text = f'kill {task} at step 1'
  with pytest.raises(ValueError, match=(
      f'chief:0, worker:0, worker:1, ps:0. Received: "{text}"')):
    language.check_tasks(text, 2, 1, False)
