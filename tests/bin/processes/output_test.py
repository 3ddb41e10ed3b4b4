# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of showing what tasks write."""

import types

import pytest

from tfplugin.bin.processes import output
from tfplugin.distribute import cluster_config


class _Role:
  """As much of a role as is followed."""

  def __init__(self, path, task, written=b''):
    self.task = cluster_config.Task(*task)
    self.log_path = path / f'{self.task.name}.log'
    self.log_path.write_bytes(written)
    self.log_start = len(written)

  def write(self, text):
    with open(self.log_path, 'ab') as log:
      log.write(text)


def _follow(tmp_path, **kwargs):
  said = []
  shown = output.TaskOutput(said.append, **kwargs)
  roles = [_Role(tmp_path, task, b'of an earlier run\n')
           for task in (('chief', 0), ('worker', 0), ('worker', 1))]
  for role in roles:
    shown.follow(role)
  return said, shown, roles


def test_lines_come_once_and_whole(tmp_path):
  said, shown, (chief, worker, _) = _follow(tmp_path)
  chief.write(b'one\ntw')
  worker.write(b'other \xff\n')
  shown.show()
  shown.show()
  chief.write(b'o')
  shown.show()
  assert said == ['chief:0| one', 'worker:0| other \ufffd']
  shown.show(is_all=True)
  assert said[2:] == ['chief:0| two']


def test_a_log_that_is_deleted_or_truncated_begins_anew(tmp_path):
  said, shown, (chief, worker, _) = _follow(tmp_path)
  chief.write(b'one\n')
  shown.show()
  chief.log_path.unlink()
  worker.log_path.write_bytes(b'two\n')
  shown.show()
  chief.write(b'three\n')
  shown.show(is_all=True)
  assert said == ['chief:0| one', 'worker:0| two', 'chief:0| three']


def test_a_log_is_shown_piece_by_piece(tmp_path, monkeypatch):
  monkeypatch.setattr(output, '_PIECE_BYTES', 4)
  said, shown, (chief, *_) = _follow(tmp_path)
  chief.write(b'ab\ncd\n0123456')
  for shows in range(1, 5):
    shown.show()
    assert len(said) == min(shows, 3)
  assert said == ['chief:0| ab', 'chief:0| cd', 'chief:0| 0123']
  chief.write(b'789')
  shown.show(is_all=True)
  assert said[3:] == ['chief:0| 4567', 'chief:0| 89']


@pytest.mark.parametrize('shown, tasks', [
    (('worker',), ['worker:0', 'worker:1']), (('worker:1',), ['worker:1']),
    (('chief', 'worker:0'), ['chief:0', 'worker:0']),
    (('all',), ['chief:0', 'worker:0', 'worker:1'])])
def test_tasks_and_jobs_are_chosen(tmp_path, shown, tasks):
  said, follower, roles = _follow(tmp_path, shown=shown)
  for role in roles:
    role.write(b'here\n')
  follower.show()
  assert said == [f'{task}| here' for task in tasks]


def test_lines_are_chosen(tmp_path):
  said, follower, roles = _follow(tmp_path, pattern='loss = 0[.]')
  roles[0].write(b'loss = 1.5\nthe loss = 0.5\n')
  follower.show()
  assert said == ['chief:0| the loss = 0.5']


def test_each_task_has_a_colour(tmp_path):
  said, follower, roles = _follow(tmp_path, is_colored=True)
  for role in roles[:2]:
    role.write(b'a\n')
  follower.show()
  assert said == ['\033[36mchief:0| \033[0ma', '\033[32mworker:0| \033[0ma']


@pytest.mark.parametrize('choice, terminal, no_color, is_colored', [
    ('always', '', '1', True), ('never', 'xterm', '', False),
    ('auto', 'xterm', '', True), ('auto', 'xterm', '1', False),
    ('auto', 'dumb', '', False), ('auto', '', '', False)])
def test_when_colours_are_used(
    monkeypatch, choice, terminal, no_color, is_colored):
  monkeypatch.setenv('TERM', terminal or 'xterm')
  monkeypatch.setenv('NO_COLOR', no_color)
  stdout = types.SimpleNamespace(isatty=lambda: bool(terminal))
  monkeypatch.setattr(output, 'sys', types.SimpleNamespace(stdout=stdout))
  assert output.should_color(choice) is is_colored


def test_who_is_not_there_cannot_be_shown():
  output.check_shown(('all', 'ps', 'chief:0'), ['chief:0', 'ps:0'])
  with pytest.raises(ValueError, match=r"`show`.*ps:0.*Received: 'worker'"):
    output.check_shown(('worker',), ['chief:0', 'ps:0'])


def test_a_bad_pattern_is_refused():
  with pytest.raises(ValueError, match=r"`grep` must be.*Received: '\('"):
    output.TaskOutput(print, pattern='(')


_DEPRECATED = (b'WARNING:tensorflow:From a.py:3: f (from b) is deprecated and '
               b'will be removed in a future version.\n'
               b'Instructions for updating:\nUse g instead.\n'
               b'a.py:4: UserWarning: `h` is deprecated.\n  x = h()\n'
               b'  ours\n')


def test_lines_about_deprecation_are_counted(tmp_path):
  for hide, num_hidden in ((output.DEPRECATIONS, 10), ('nothing', 0)):
    said, follower, roles = _follow(tmp_path, hide=hide)
    for role in roles[:2]:
      role.write(_DEPRECATED + b'step 1\n')
    follower.show()
    follower.show(is_all=True)
    told = [line for line in said if 'not shown' in line]
    wanted = (f'{num_hidden} lines about deprecation were not shown; '
              '--hide=nothing')
    assert [wanted in line for line in told] == [True] * bool(num_hidden)
    assert len(said) - len(told) == 14 - num_hidden
    assert [line for line in said if 'step 1' in line] == [
        'chief:0| step 1', 'worker:0| step 1']


def test_a_message_in_two_formats_is_shown_once(tmp_path):
  said, follower, (chief, *_) = _follow(tmp_path)
  absl = 'I1127 01:50:04.293295 140538317994880 estimator.py:72] '
  chief.write(f'INFO:tensorflow:Using config: {{\n a\n}}\n'
              f'{absl}Using config: {{\n a\n}}\nprinted\n'
              f'{absl}step 1\nINFO:tensorflow:step 1\n'
              f'INFO:tensorflow:step 2\nINFO:tensorflow:step 2\n'.encode())
  follower.show()
  assert [line.partition('| ')[2] for line in said] == [
      'INFO:tensorflow:Using config: {', ' a', '}', 'printed',
      f'{absl}step 1', 'INFO:tensorflow:step 2', 'INFO:tensorflow:step 2']


def test_the_traceback_of_another_task_is_a_line(tmp_path):
  said, follower, (chief, worker, other) = _follow(tmp_path)
  trace = (b'Traceback (most recent call last):\n  File "a.py", line 19\n'
           b'    nope\n  File "/site-packages/b.py", line 1\n    run_chief()\n'
           b'NameError: nope\n')
  chief.write(b'first\n' + trace[:60])
  follower.show()
  assert said == ['chief:0| first']
  chief.write(trace[60:] + b'bye\n')
  # Other functions of Estimator lead to the same line of the program.
  worker.write(trace.replace(b'run_chief', b'run_worker'))
  other.write(trace.replace(b'19', b'20') + b'  unfinished')
  follower.show(is_all=True)
  assert said[1:] == [
      *(f'chief:0| {line}' for line in trace.decode().splitlines()),
      'chief:0| bye', 'worker:0| NameError: nope (the traceback of chief:0)',
      *(f'worker:1| {line}' for line in
        trace.decode().replace('19', '20').splitlines()),
      'worker:1|   unfinished']


def test_few_tracebacks_are_remembered(tmp_path, monkeypatch):
  monkeypatch.setattr(output, '_MOST_TRACEBACKS', 3)
  said, follower, (chief, worker, _) = _follow(tmp_path)
  traces = [b'Traceback (most recent call last):\n  File "a.py", line 1\n'
            b'E: %d\n' % number for number in range(8)]
  chief.write(b''.join(traces))
  follower.show()
  worker.write(traces[-1] + traces[0])
  follower.show()
  assert said[-4] == 'worker:0| E: 7 (the traceback of chief:0)'
  assert said[-1] == 'worker:0| E: 0'
  assert len(follower._tracebacks) <= 3
