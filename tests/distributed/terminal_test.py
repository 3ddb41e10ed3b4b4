# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the programs show on a terminal while they run, and leave on it."""

import os
import re
import subprocess
import sys
import textwrap

import pytest

from tests.distributed import terminals

pytestmark = [pytest.mark.distributed, pytest.mark.usefixtures('forking')]

# Tells events as a task that trains does, and ends when it was seen.
_PROGRAM = textwrap.dedent('''
    import json, os, pathlib, sys, time
    task = json.loads(os.environ['TF_CONFIG'])['task']
    directory = pathlib.Path(sys.argv[1])
    (directory / 'events').mkdir(parents=True, exist_ok=True)
    path = directory / 'events' / f"{task['type']}-{task['index']}.jsonl"
    name = f"{task['type']}:{task['index']}"

    def tell(name, kind, **details):
      with open(path, 'a') as file:
        file.write(json.dumps({
            'version': 1, 'time': time.time(), 'pid': os.getpid(), 'name': name,
            'task': path.stem.replace('-', ':'), 'kind': kind, **details
            }) + '\\n')

    if task['type'] == 'worker':
      tell('waiting', 'begin', on=['chief:0'])
    else:
      print('x' * 150)
      tell('training', 'begin', step=12345, steps_per_sec=102.25)
      tell('dropping', 'instant', step=12345, num_dropped=1, num_applied=7)
    while not (directory / 'seen').exists():
      time.sleep(0.05)
    print('the last word')
    ''')
_SUMMARY = ['task      status  restarts  last step  reasons',
            'chief:0   done    0         12345', 'worker:0  done    0']
_BAR = '[━╸╺]+'


def _launch(tmp_path, *flags):
  """Returns the arguments of a launch of the chief and a worker."""
  program = tmp_path / 'program.py'
  program.write_text(_PROGRAM)
  model_dir = tmp_path / 'model'
  return ['tfplugin.bin.launch', '--workers=1', '--ps=0',
          f'--logs_dir={tmp_path / "logs"}', f'--model_dir={model_dir}',
          '--steps=20000', *flags, '--', sys.executable, str(program),
          str(model_dir)]


def _has_all(screen):
  return 'waits' in screen.text and 'training' in screen.text


def _is_of_tasks(line):
  return re.match(r'(chief|worker):0 +(\d+|waits|training)|step \d', line)


def _of_display(screen):
  return {' '.join(line.split()) for line in screen.erased
          if _is_of_tasks(line)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize('columns, word', [(40, ''), (120, ' left')])
def test_a_launch_shows_its_tasks_and_leaves_its_lines(
    tmp_path, columns, word):
  with terminals.Program(columns, *_launch(tmp_path)) as program:
    program.look_until(_has_all)
    assert not program.screen.is_cursor_shown
    (tmp_path / 'model' / 'seen').touch()
    assert program.finish() == 0
  shown = _of_display(program.screen)
  # One of eight was dropped; the speed of one word is not known.
  assert 'chief:0 12345 102.2 12.5% training' in shown
  assert any(re.fullmatch(f'step 12345/20000 {_BAR} -:--:--{word}', one)
             for one in shown)
  assert any(one.startswith('worker:0 waits') for one in shown)
  # Not one of them stays; what the tasks wrote does, and the summary.
  assert program.screen.is_cursor_shown
  assert not any(map(_is_of_tasks, program.screen.text.split('\n')))
  # The terminal breaks long lines, and is not told where.
  text = program.screen.text.replace('\n', '')
  for said in ('chief:0| ' + 'x' * 150, 'chief:0| the last word',
               'worker:0| the last word'):
    assert text.count(said) == 1
  assert text.endswith(''.join(_SUMMARY))


@pytest.mark.parametrize('variables, flags', [
    ({'NO_COLOR': '1'}, []), ({}, ['--color=never'])])
def test_ctrl_c_ends_in_order_and_gives_the_terminal_back(
    tmp_path, variables, flags):
  with terminals.Program(40, *_launch(tmp_path, *flags),
                         **variables) as program:
    program.look_until(_has_all)
    program.press_ctrl_c()
    assert program.finish() == 130
  screen = program.screen
  assert screen.is_cursor_shown
  assert re.search(
      r'Stopping the tasks; (.|\n)*\nchief:0   stopped (.|\n)*'
      r'Stopped on request\.$',
      screen.text)
  assert not any(map(_is_of_tasks, screen.text.split('\n')))
  colours = [s for s in screen.sequences if re.search(r'(^|;)[349]\d', s)]
  assert not colours


@pytest.mark.parametrize('variables, flags', [
    ({'TERM': 'dumb'}, []), ({'NO_COLOR': '1'}, ['--nolive'])])
def test_a_terminal_that_shows_lines_alone_gets_them(
    tmp_path, variables, flags):
  (tmp_path / 'model').mkdir()
  (tmp_path / 'model' / 'seen').touch()
  with terminals.Program(200, *_launch(tmp_path, *flags),
                         **variables) as program:
    assert program.finish() == 0
  assert not program.screen.sequences
  _is_plain(tmp_path, program.screen.text)


def test_a_pipe_gets_lines_whatever_the_environment_says(tmp_path):
  (tmp_path / 'model').mkdir()
  (tmp_path / 'model' / 'seen').touch()
  ended = subprocess.run(
      [sys.executable, '-m', *_launch(tmp_path)], capture_output=True,
      text=True, check=True, timeout=120,
      env={**os.environ, 'FORCE_COLOR': '1', 'TERM': 'xterm'})
  _is_plain(tmp_path, ended.stdout)


def _is_plain(tmp_path, text):
  # TensorFlow 2.21 looks for a GPU in each absl program, and logs that.
  first, *others = (line for line in text.rstrip().split('\n')
                    if not re.match(r'[IWEF]\d{4} \d\d:\d\d:', line))
  assert first == (f'Started chief:0, worker:0; their logs are in {tmp_path}'
                   '/logs')
  assert sorted(others[:3]) == ['chief:0| the last word',
                                'chief:0| ' + 'x' * 150,
                                'worker:0| the last word']
  assert others[3:] == _SUMMARY


@pytest.mark.sampled(3)
def test_a_run_that_drops_shows_staleness_on_a_narrow_terminal(tmp_path):
  with terminals.Program(
      40, 'tfplugin.bin.train', '--wrapper=drop_stale', '--workers=0',
      '--steps=400', '--noevaluator', f'--model_dir={tmp_path}') as program:
    assert program.finish() == 0
  shown = _of_display(program.screen)
  assert any(re.fullmatch(rf'step \d+/400 {_BAR} \d:\d\d:\d\d', one)
             for one in shown)
  heading, = {' '.join(line.split()) for line in program.screen.erased
              if 'staleness' in line}
  assert heading == 'task step steps/s staleness state'
  # Alone, the chief is never behind.
  assert any(re.fullmatch(r'chief:0 \d+ [\d.]* ?0 training', one)
             for one in shown)
  assert program.screen.is_cursor_shown
  assert 'global step' in program.screen.text
  assert not any(map(_is_of_tasks, program.screen.text.split('\n')))
