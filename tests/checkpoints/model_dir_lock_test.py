# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the lock, between processes and after a death."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from tfplugin.checkpoints import model_dir_lock

_HOLD = '''
import sys
from tfplugin.checkpoints import model_dir_lock
with model_dir_lock.locked(sys.argv[1], 'chief:0'):
  print('held', flush=True)
  sys.stdin.read()
'''


def test_another_process_is_named_and_its_death_frees(tmp_path):
  environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)}
  with subprocess.Popen([sys.executable, '-c', _HOLD, str(tmp_path)],
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        env=environment, text=True) as holder:
    assert holder.stdout.readline() == 'held\n'
    with pytest.raises(RuntimeError, match=(
        rf'model_dir .* is in use by chief:0 .process {holder.pid} on ')):
      with model_dir_lock.locked(str(tmp_path), 'chief:0'):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait(60)
    with model_dir_lock.locked(str(tmp_path), 'chief:0'):
      assert f'process {os.getpid()}' in (
          tmp_path / model_dir_lock.FILE_NAME).read_text()


def test_one_after_the_other_may_run(tmp_path):
  for _ in range(2):
    with model_dir_lock.locked(str(tmp_path / 'new'), 'worker:0'):
      pass


def test_a_remote_directory_has_no_lock():
  with model_dir_lock.locked('gs://bucket/model', 'chief:0'):
    with model_dir_lock.locked('gs://bucket/model', 'chief:0'):
      pass


def test_a_file_system_without_locks_stops_no_training(
    tmp_path, monkeypatch, caplog):
  def flock(*unused):
    raise OSError(errno.ENOLCK, 'No locks available')

  monkeypatch.setattr(model_dir_lock.fcntl, 'flock', flock)
  with caplog.at_level('WARNING', 'tensorflow'):
    with model_dir_lock.locked(str(tmp_path), 'chief:0'):
      pass
  assert f'No lock keeps other runs out of {tmp_path}' in caplog.text


def test_a_system_without_the_module_has_no_lock(tmp_path, monkeypatch):
  monkeypatch.setattr(model_dir_lock, 'fcntl', None)
  with model_dir_lock.locked(str(tmp_path), 'chief:0'):
    assert not list(tmp_path.iterdir())
