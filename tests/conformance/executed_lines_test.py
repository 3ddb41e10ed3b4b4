# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what `make mutants` knows of the tests: lines, time, order."""
# BUILD data: //:sources

import os
import pathlib
import subprocess
import sys

import pytest

from build_defs import executed_lines

_ROOT = pathlib.Path(__file__).absolute().parents[2]
_SOURCE = '''\
def first():
  return 1
def second(x=0):
  return x
CONSTANT = first()
'''
_TESTS = '''\
import subprocess, sys, time
import pytest
from tfplugin import toy
@pytest.fixture(scope='module')
def shared():
  return toy.second()
@pytest.mark.parametrize('number', [1, 2])
def test_shared(shared, number):
  pass
def test_slow():
  time.sleep(.3)
  toy.second()
def test_quick():
  toy.second()
def test_process():
  subprocess.run([sys.executable, '-c', ''], check=True)
def test_other_process():
  subprocess.run(['true'], check=True)
def test_thread():
  import threading
  thread = threading.Thread(target=toy.second)
  thread.start()
  thread.join()
def test_converted():
  def tf__second():
    pass
  tf__second()
'''
_PROGRAM = '''
import pathlib, sys
import pytest
root, project = map(pathlib.Path, sys.argv[1:3])
sys.path[:0] = [str(root), str(project)]
from build_defs import executed_lines
recorder = executed_lines.Recorder(root)
recorder.start()
arguments = ['-q', '-p', 'no:cacheprovider', '--rootdir', str(root)]
assert not pytest.main([*arguments, 'toy_test.py'], plugins=[recorder])
recorder.write(root / 'lines.json')
print('chosen:')
pytest.main([*arguments, '-vv', 'toy_test.py'], plugins=[executed_lines.Chosen(
    ['toy_test.py::test_quick', 'toy_test.py::test_gone',
     'toy_test.py::test_shared[2]'])])
'''


@pytest.fixture(scope='module', name='recorded')
def fixture_recorded(tmp_path_factory):
  root = tmp_path_factory.mktemp('root')
  (root / 'tfplugin').mkdir()
  (root / 'tfplugin' / '__init__.py').touch()
  (root / 'tfplugin' / 'toy.py').write_text(_SOURCE)
  (root / 'toy_test.py').write_text(_TESTS)
  done = subprocess.run(
      [sys.executable, '-c', _PROGRAM, str(root), str(_ROOT)], cwd=root,
      env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)},
      capture_output=True, text=True, timeout=200, check=False)
  assert not done.returncode, done.stdout + done.stderr
  lines = executed_lines.Lines(root / 'lines.json')

  def tests_of(*arguments):
    return [test.removeprefix('toy_test.py::test_')
            for test in lines.tests_of('tfplugin/toy.py', *arguments)]

  return tests_of, lines, done.stdout.partition('chosen:')[2]


def test_the_tests_that_run_a_line(recorded):
  tests_of, *_ = recorded
  found = tests_of('second', (4, 4))
  # Those that share a fixture all need the line, and come last; a process, or
  # what AutoGraph converts, may run it.
  assert sorted(found[:-2]) == [
      'converted', 'process', 'quick', 'slow', 'thread']
  assert sorted(found[-2:]) == ['shared[1]', 'shared[2]']
  assert found.index('quick') < found.index('slow')


def test_what_is_converted_runs_the_functions_inside_of_it(recorded):
  tests_of, *_ = recorded
  assert sorted(tests_of('Toy.second.third', (9, 9))) == [
      'converted', 'process']


def test_a_line_that_only_a_process_may_run(recorded):
  tests_of, *_ = recorded
  assert tests_of('third', (9, 9)) == ['process']


@pytest.mark.parametrize('lines', [(2, 2), None])
def test_what_an_import_runs_is_of_all_tests(recorded, lines):
  tests_of, *_ = recorded
  assert len(tests_of('first', lines)) == 8


def test_how_long_tests_take(recorded):
  _, lines, _ = recorded
  slow = lines.seconds_of(['toy_test.py::test_slow'])
  assert slow >= .3  # It sleeps that long.


def test_chosen_tests_run_in_their_order(recorded):
  *_, printed = recorded
  assert [line.split()[0] for line in printed.splitlines()
          if ' PASSED' in line] == [
              'toy_test.py::test_quick', 'toy_test.py::test_shared[2]']
