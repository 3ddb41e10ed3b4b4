# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what is done to a process."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest

from tfplugin.events import clock
from tfplugin.events import event_log
from tfplugin.faults import acts
from tfplugin.faults import host_names
from tfplugin.faults import language

_LIMIT = 60

# Adds a byte to a file for each line that it reads, and says what came of it.
_WRITER = textwrap.dedent('''
    import errno, os, sys
    file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for line in sys.stdin:
      try:
        print(os.write(file, b'x'), flush=True)
      except OSError as e:
        print(errno.errorcode[e.errno], flush=True)
    ''')


@contextlib.contextmanager
def _process(tf_config):
  """A process with a value of TF_CONFIG in its environment."""
  code = 'import time; print(1, flush=True); time.sleep(99)'
  process = subprocess.Popen(
      [sys.executable, '-c', code],
      env={**os.environ, 'TF_CONFIG': tf_config}, stdout=subprocess.PIPE)
  process.stdout.readline()
  yield process
  process.kill()
  process.wait()


@pytest.fixture(name='ps')
def fixture_ps():
  """A process that is ps:0 by its environment."""
  with _process(json.dumps({
      'cluster': {'ps': ['127.0.0.1:1']},
      'task': {'type': 'ps', 'index': 0}})) as process:
    yield process


def _send(text, pid):
  acts.send(*language.parse(text), pid)


def test_a_new_address_is_there_before_the_end(ps, monkeypatch, tmp_path):
  hosts = tmp_path / 'hosts'
  hosts.write_text('127.0.0.1 a\n127.0.0.1 a.test\n')
  monkeypatch.setattr(host_names, 'HOSTS', str(hosts))
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {'ps': ['a.test:1'], 'chief': ['b:1']},
      'task': {'type': 'chief', 'index': 0}}))
  _send('new_address ps:0 at step 1', ps.pid)
  assert hosts.read_text() == '127.0.0.1 a\n127.0.0.2 a.test\n'
  assert ps.wait(_LIMIT) == -signal.SIGKILL


@pytest.mark.parametrize('text', [
    'kill ps:0 at step 1', 'stop ps:0 for 1 s at step 1',
    'terminate ps:0 at step 1'])
def test_a_signal_without_effect_is_an_error(monkeypatch, text):
  monkeypatch.setattr(os, 'getpid', lambda: 1)
  monkeypatch.setattr(os, 'kill', lambda *sent: pytest.fail(str(sent)))
  with pytest.raises(RuntimeError, match=f'"{text}" would have no effect'):
    _send(text, 1)


def test_a_signal_that_the_first_process_handles_has_an_effect(monkeypatch):
  sent = []
  monkeypatch.setattr(os, 'getpid', lambda: 1)
  monkeypatch.setattr(os, 'kill', lambda *pair: sent.append(pair))
  monkeypatch.setattr(signal, 'getsignal', lambda number: print)
  _send('terminate chief:0 at step 1', 1)
  assert sent == [(1, signal.SIGTERM)]


def test_an_upgrade_begins_with_a_stop_on_request(ps):
  _send('upgrade ps:0 to new/bin/python at step 1', ps.pid)
  assert ps.wait(_LIMIT) == -signal.SIGTERM


@pytest.mark.parametrize('kind, number', [
    ('kill', signal.SIGKILL), ('terminate', signal.SIGTERM)])
def test_signals_that_end(ps, kind, number):
  _send(f'{kind} ps:0 at step 1', ps.pid)
  assert ps.wait(_LIMIT) == -number


def test_a_stopped_process_wakes_up(ps):
  def wait_until(is_stopped):
    deadline = time.monotonic() + _LIMIT
    while (psutil.Process(ps.pid).status() ==
           psutil.STATUS_STOPPED) is not is_stopped:
      assert time.monotonic() < deadline
      time.sleep(0.01)

  _send('stop ps:0 for 1 s at step 1', ps.pid)
  wait_until(True)
  wait_until(False)
  assert ps.poll() is None


def _tell(tmp_path, task, pid, monkeypatch):
  monkeypatch.setattr(os, 'getpid', lambda: pid)
  event_log.EventLog(tmp_path, task).write('starting', 'begin')


def test_a_task_is_found_by_its_events(tmp_path, ps, monkeypatch):
  _tell(tmp_path, 'ps:0', ps.pid, monkeypatch)
  assert acts.process_of('ps:0', str(tmp_path)) == ps.pid


@pytest.mark.parametrize('cluster', [
    {'master': ['a:1'], 'ps': ['b:1']}, {'master': ['a:1']}])
def test_a_master_is_found_as_the_chief_that_a_strategy_calls_it(
    cluster, tmp_path, monkeypatch):
  with _process(json.dumps({'cluster': cluster, 'task': {
      'type': 'master', 'index': '0'}})) as process:
    _tell(tmp_path, 'chief:0', process.pid, monkeypatch)
    assert acts.process_of('chief:0', str(tmp_path)) == process.pid


@pytest.mark.parametrize('value', ['{cluster', '[1]', '{"task": 1}'])
def test_a_bad_tf_config_is_named(value, tmp_path, monkeypatch):
  with _process(value) as process:
    _tell(tmp_path, 'ps:0', process.pid, monkeypatch)
    with pytest.raises(RuntimeError, match=(
        f'(?s)process {process.pid}: `TF_CONFIG` must .*Received: .*Set it as')
                      ):
      acts.process_of('ps:0', str(tmp_path))


@pytest.fixture(name='unnamed')
def fixture_unnamed():
  """A process without TF_CONFIG in the environment that it began with."""
  with subprocess.Popen(['sleep', '99']) as process:
    yield process
    process.kill()


def test_a_task_that_names_itself_is_found(tmp_path, unnamed, monkeypatch):
  _tell(tmp_path, 'ps:0', unnamed.pid, monkeypatch)
  assert acts.process_of('ps:0', str(tmp_path)) == unnamed.pid


@pytest.mark.parametrize('secs', [-3600, 30])
def test_a_process_that_began_at_another_time_is_not_met(
    tmp_path, unnamed, monkeypatch, secs):
  # Long before the event, or after it: the number was another one's.
  now = clock.now()
  with monkeypatch.context() as patch:
    patch.setattr(clock, 'now', lambda: now - secs)
    _tell(tmp_path, 'ps:0', unnamed.pid, patch)
  with pytest.raises(RuntimeError, match='runs on this machine.*ps:0'):
    acts.process_of('ps:0', str(tmp_path))


def test_a_process_that_has_ended_is_not_met(tmp_path, unnamed, monkeypatch):
  _tell(tmp_path, 'ps:0', unnamed.pid, monkeypatch)
  unnamed.kill()
  with pytest.raises(RuntimeError, match='runs on this machine.*ps:0'):
    deadline = time.monotonic() + _LIMIT
    while time.monotonic() < deadline:
      acts.process_of('ps:0', str(tmp_path))


@pytest.mark.parametrize('pid', [None, 2**22 + 1])
def test_another_process_is_not_met(tmp_path, ps, monkeypatch, pid):
  # A task that never told anything; a number that another process has now.
  if pid is not None:
    _tell(tmp_path, 'ps:1', pid, monkeypatch)
    _tell(tmp_path, 'ps:1', ps.pid, monkeypatch)
  with pytest.raises(RuntimeError, match='runs on this machine.*ps:1'):
    acts.process_of('ps:1', str(tmp_path))


def test_half_of_the_newest_checkpoint_is_cut_off(tmp_path):
  acts.damage(str(tmp_path))  # There is none.
  for step in (5, 10):
    for part in ('00000-of-00002', '00001-of-00002'):
      (tmp_path / f'model.ckpt-{step}.data-{part}').write_bytes(b'12345678')
    index = tmp_path / f'model.ckpt-{step}.index'
    index.write_bytes(b'index')
    os.utime(index, (step, step))
  acts.damage(str(tmp_path))
  sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
  assert sizes == {
      'model.ckpt-5.data-00000-of-00002': 8, 'model.ckpt-5.index': 5,
      'model.ckpt-5.data-00001-of-00002': 8, 'model.ckpt-10.index': 5,
      'model.ckpt-10.data-00000-of-00002': 4,
      'model.ckpt-10.data-00001-of-00002': 4}


@pytest.fixture(name='start')
def fixture_start():
  """Starts a process that runs some code, with pipes."""
  started = []

  def start(code, *arguments):
    started.append(subprocess.Popen(
        [sys.executable, '-c', code, *arguments], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, bufsize=1))
    return started[-1]

  yield start
  for process in started:
    process.kill()
    process.communicate()


def _write(process):
  process.stdin.write('\n')
  return process.stdout.readline().strip()


def test_no_file_is_made_in_a_read_only_directory_until_it_ends(tmp_path):
  try:
    acts.make_readonly(str(tmp_path), 0.5)
  except OSError as e:  # Root in a container without the right to mount.
    pytest.skip(str(e))
  with pytest.raises(OSError, match='Read-only file system|Permission denied'):
    (tmp_path / 'a').write_text('x')
  deadline = time.monotonic() + _LIMIT
  while not os.access(tmp_path, os.W_OK):
    assert time.monotonic() < deadline
    time.sleep(0.01)
  (tmp_path / 'a').write_text('x')


def test_no_file_of_a_full_disk_grows_until_there_is_space(start, tmp_path):
  full, other = start(_WRITER, str(tmp_path / 'full')), start(
      _WRITER, str(tmp_path / 'other'))
  assert _write(full) == '1'
  end = acts.begin_outage('fill', full.pid, _LIMIT)
  assert _write(full) == 'EFBIG'
  assert _write(other) == '1'
  end()
  assert _write(full) == '1'
  assert (tmp_path / 'full').read_bytes() == b'xx'


def test_an_outage_ends_by_itself(start, tmp_path):
  full = start(_WRITER, str(tmp_path / 'full'))
  limits = resource.prlimit(full.pid, resource.RLIMIT_FSIZE)
  end = acts.begin_outage('fill', full.pid, 0.1)
  end.thread.join(_LIMIT)
  assert resource.prlimit(full.pid, resource.RLIMIT_FSIZE) == limits
  end()  # Once is enough.


@pytest.mark.parametrize('kind', ['cut', 'fill', 'partition'])
def test_a_process_that_ended_is_an_error_and_its_outage_is_over(start, kind):
  process = start('')
  process.wait(_LIMIT)
  with pytest.raises(OSError):
    acts.begin_outage(kind, process.pid, 1.0)


def test_an_outage_of_a_process_that_ends_is_no_error(start, tmp_path):
  full = start(_WRITER, str(tmp_path / 'full'))
  end = acts.begin_outage('fill', full.pid, _LIMIT)
  full.kill()
  full.wait(_LIMIT)
  end()
