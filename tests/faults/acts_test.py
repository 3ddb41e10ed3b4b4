# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what is done to a process."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tfplugin.events import event_log
from tfplugin.faults import acts
from tfplugin.faults import language

_LIMIT = 60


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
  now = time.time()
  with monkeypatch.context() as patch:
    patch.setattr(time, 'time', lambda: now - secs)
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
