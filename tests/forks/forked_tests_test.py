# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs pytest on small modules: their processes, their ends, their limits."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest

_ROOT = pathlib.Path(__file__).absolute().parents[2]
_SETTINGS = """
[pytest]
python_files = *_test.py
addopts = --import-mode=importlib -ra
timeout = 60
timeout_method = thread
"""
_PIDS = """
    import os, pathlib
    def _write():
      with open(pathlib.Path(__file__).parent / 'pids', 'a') as file:
        file.write(f'{os.getpid()} {os.getppid()}\\n')
"""


def _start(tmp_path, *arguments, **modules):
  """Starts pytest on some modules, as the leader of a group of processes."""
  (tmp_path / 'pytest.ini').write_text(_SETTINGS)
  for name, text in modules.items():
    (tmp_path / f'{name}_test.py').write_text(textwrap.dedent(text))
  return subprocess.Popen(
      [sys.executable, '-m', 'pytest', '-p', 'tests.forks.forked_tests',
       '-p', 'no:cacheprovider', *arguments, str(tmp_path)],
      cwd=tmp_path, env={**os.environ, 'PYTHONPATH': os.pathsep.join(
          [str(_ROOT), *filter(None, sys.path)])},
      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
      start_new_session=True, preexec_fn=_ignore_interrupts)


def _ignore_interrupts():
  """Does as the shell of a script does for what it starts with `&`."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(tmp_path, *arguments, **modules):
  """Returns pytest's status and what it printed of some modules."""
  process = _start(tmp_path, *arguments, **modules)
  try:
    text, _ = process.communicate(timeout=100)
  finally:
    process.kill()
  return process.returncode, text


def _outcomes(text):
  """Returns how many tests passed, failed and so on."""
  last = text.strip().splitlines()[-1]
  return {word: int(count) for count, word in re.findall(r'(\d+) (\w+)', last)}


def _pids(tmp_path):
  lines = (tmp_path / 'pids').read_text().splitlines()
  return [tuple(map(int, line.split())) for line in lines]


_TWO = _PIDS + """
    def test_first(): _write()
    def test_second(): _write()
"""


@pytest.mark.parametrize('arguments', [(), ('-n', '1')], ids=['one', 'xdist'])
def test_each_module_has_a_process(tmp_path, arguments):
  status, text = _run(tmp_path, *arguments, a=_TWO, b=_TWO)
  assert status == 0 and _outcomes(text)['passed'] == 4, text
  (a, parent), a_again, (b, parent_of_b), b_again = _pids(tmp_path)
  assert a_again == (a, parent) and b_again == (b, parent)
  assert len({a, b, parent}) == 3 and parent_of_b == parent


def test_one_process_runs_everything(tmp_path):
  status, text = _run(tmp_path, '--one-process', a=_TWO, b=_TWO)
  assert status == 0, text
  assert len(set(_pids(tmp_path))) == 1


def test_a_failure_shows_its_values_and_its_output(tmp_path):
  status, text = _run(tmp_path, a="""
      import pytest
      def test_fails():
        print('before')
        assert [1, 2] == [1, 3]
      @pytest.mark.xfail(strict=True)
      def test_is_expected_to_fail(): assert False
      @pytest.mark.skip(reason='no unicorn')
      def test_is_skipped(): pass
      """)
  assert status == 1
  assert _outcomes(text).items() >= {
      'failed': 1, 'xfailed': 1, 'skipped': 1}.items()
  for words in ('At index 1 diff: 2 != 3', 'before', 'no unicorn'):
    assert words in text


@pytest.mark.parametrize('end, words', [
    ('os._exit(3)', 'status 3'),
    ('os.kill(os.getpid(), signal.SIGKILL)', 'SIGKILL')])
def test_a_process_that_ends_fails_its_test_alone(tmp_path, end, words):
  status, text = _run(tmp_path, a=f"""
      import os, signal
      def test_before(): pass
      def test_ends(): {end}
      def test_after(): pass
      """)
  assert status == 1
  assert _outcomes(text).items() >= {'passed': 2, 'failed': 1}.items(), text
  assert f'The process of this test ended: {words}' in text
  assert 'FAILED a_test.py::test_ends' in text


@pytest.mark.parametrize('arguments', [(), ('-n', '1')], ids=['one', 'xdist'])
def test_a_test_that_hangs_ends_in_its_time(tmp_path, arguments):
  status, text = _run(tmp_path, *arguments, a="""
      import time, pytest
      @pytest.mark.timeout(1)
      def test_hangs(): time.sleep(50)
      def test_after(): pass
      """)
  assert status == 1
  assert _outcomes(text).items() >= {'passed': 1, 'failed': 1}.items(), text
  assert 'This test took longer than its 1 s' in text
  assert re.search(r'line \d+ in test_hangs', text), 'the stack'


def test_an_interrupt_tears_fixtures_down(tmp_path):
  status, text = _run(tmp_path, a=_PIDS + """
    import pytest
    @pytest.fixture
    def kept():
      yield
      _write()
    def test_is_interrupted(kept): raise KeyboardInterrupt
    """)
  assert status == 1 and 'ended: status 1' in text, text
  assert len(_pids(tmp_path)) == 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize('arguments', [(), ('-n', '1')], ids=['one', 'xdist'])
@pytest.mark.parametrize('end', [
    lambda process: os.killpg(process.pid, signal.SIGINT),
    lambda process: process.kill(),
], ids=['ctrl_c', 'killed'])
def test_what_a_test_has_started_ends_with_the_run(tmp_path, arguments, end):
  process = _start(tmp_path, *arguments, a="""
      import pathlib, subprocess, time
      from tests.forks import forked_tests
      forked_tests._PROCESSES_SECS = 0.2
      def test_has_a_program():
        program = subprocess.Popen(['sleep', '4322'], start_new_session=True)
        started = pathlib.Path(__file__).with_name('started')
        started.with_suffix('.new').write_text(str(program.pid))
        started.with_suffix('.new').rename(started)
        time.sleep(50)
      """)
  try:
    while not (tmp_path / 'started').exists():
      assert process.poll() is None, process.communicate()[0]
      time.sleep(0.05)
    program = psutil.Process(int((tmp_path / 'started').read_text()))
    end(process)
    program.wait(40)
  finally:
    process.kill()
    process.communicate()


def test_processes_that_are_left_fail_by_name(tmp_path):
  status, text = _run(tmp_path, a='''
      import subprocess
      from tests.forks import forked_tests
      forked_tests._PROCESSES_SECS = 2
      def test_ends_its_own():
        subprocess.Popen(['sleep', '0.5'])
      ''', b='''
      import subprocess
      def test_leaves_one():
        subprocess.Popen(['sleep', '4321'], start_new_session=True)
      ''')
  assert status == 1
  assert "Tests of b_test.py left processes behind" in text
  assert "['sleep 4321']" in text
  assert _outcomes(text).items() >= {'passed': 2, 'failed': 1}.items(), text
  assert not [process for process in psutil.process_iter(['cmdline'])
              if process.info.get('cmdline') == ['sleep', '4321']]


def test_the_first_failure_may_end_all(tmp_path):
  status, text = _run(tmp_path, '-x', a=_PIDS + """
    import tempfile
    def test_fails():
      _write()
      (pathlib.Path(__file__).parent / 'made').write_text(tempfile.mkdtemp())
      assert False
    def test_is_not_run(): pass
    """, b='def test_neither(): pass')
  assert status == 1 and _outcomes(text)['failed'] == 1, text
  assert not pathlib.Path((tmp_path / 'made').read_text()).parent.exists()
  [(pid, _)] = _pids(tmp_path)
  assert not psutil.pid_exists(pid)


def test_temporary_files_end_with_the_process(tmp_path):
  status, text = _run(tmp_path, a="""
      import pathlib, subprocess, tempfile
      def test_makes_files():
        ours = tempfile.mkdtemp()
        theirs = subprocess.run(
            ['mktemp'], capture_output=True, text=True).stdout.strip()
        (pathlib.Path(__file__).parent / 'made').write_text(f'{ours} {theirs}')
      """)
  assert status == 0, text
  ours, theirs = (tmp_path / 'made').read_text().split()
  assert pathlib.Path(ours).parent == pathlib.Path(theirs).parent
  assert not pathlib.Path(ours).parent.exists()


def test_a_process_that_has_grown_is_replaced(tmp_path):
  status, text = _run(tmp_path, a=_PIDS + """
    import pytest, threading
    @pytest.fixture(scope='module')
    def shared():
      yield
      (pathlib.Path(__file__).parent / f'closed{os.getpid()}').touch()
    _KEPT = []
    def test_grows(shared):
      _write()
      _KEPT.extend(os.open('/dev/null', os.O_RDONLY) for _ in range(150))
    def test_last(shared): _write()
    def test_next(shared): _write(); assert not _KEPT
    """)
  assert status == 0, text
  first, last, following = (pid for pid, _ in _pids(tmp_path))
  assert first != last == following
  for pid in (first, following):
    assert (tmp_path / f'closed{pid}').exists()


@pytest.mark.parametrize('grow, words', [
    ("[os.open('/dev/null', os.O_RDONLY) for _ in range(300)]",
     r'descriptors=3\d\d'),
    ('[threading.Thread(target=threading.Event().wait, daemon=True).start() '
     'for _ in range(310)]', r'threads=31\d'),
    ("_KEPT.append(b'x' * (1600 << 20))", r'mebibytes=16\d\d')],
                         ids=['descriptors', 'threads', 'memory'])
def test_a_process_beyond_a_limit_fails_by_name(tmp_path, grow, words):
  status, text = _run(tmp_path, a=f"""
      import os, threading
      _KEPT = []
      def test_grows(): {grow}
      def test_after(): pass
      """)
  assert status == 1
  assert re.search(rf'After this test its process holds \w+\(.*{words}', text)
  assert 'FAILED a_test.py::test_grows' in text


def test_a_module_that_starts_threads_is_refused(tmp_path):
  status, text = _run(tmp_path, a="""
      import threading
      threading.Thread(target=threading.Event().wait, daemon=True).start()
      def test_is_not_run(): pass
      """, b='def test_other(): pass')
  assert status == 2
  assert 'a_test.py starts threads when it is imported' in text
