# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Actions of the faults on a process or a checkpoint."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess

from tfplugin.events import event_files
from tfplugin.faults import language
from tfplugin.faults import outages

# From the start of a program until its first event: it imports TensorFlow.
_START_LIMIT_SECS = 600.0


class InjectedError(RuntimeError):
  """The exception of the fault `raise`."""


def send(fault: language.Fault, pid: int) -> None:
  """Injects a fault, of a kind with `is_signal`, into this or another process.

  Raises OSError if there is no such process, or if the kernel refuses.
  """
  if fault.kind in ('cut', 'fill'):
    outages.begin(fault.kind, pid, fault.secs)
    return
  if fault.kind == 'stop':
    # A stopped process cannot wake up by itself.
    subprocess.Popen(
        ['sh', '-c', f'sleep {fault.secs:g}; kill -CONT {pid}'],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True)
  os.kill(pid, {'kill': signal.SIGKILL, 'terminate': signal.SIGTERM,
                'stop': signal.SIGSTOP}[fault.kind])


def damage(model_dir: str) -> None:
  """Truncates the files of the newest checkpoint to half, as a bad disk would.

  Without a checkpoint it does nothing.
  """
  indices = pathlib.Path(model_dir).glob('*.ckpt-*.index')
  newest = max(indices, key=lambda path: path.stat().st_mtime_ns, default=None)
  if newest is not None:
    for path in newest.parent.glob(f'{newest.stem}.data-*'):
      os.truncate(path, path.stat().st_size // 2)


def process_of(task: str, model_dir: str) -> int:
  """Returns the process of another task, e.g. `ps:0`, on this machine.

  The task's events in `model_dir` name it. Raises RuntimeError if there is
  none, or if the process is not that task.
  """
  told = event_files.read_file(event_files.path_of(model_dir, task)).events
  if told:
    pid = told[-1].pid
    named = _task_of(pid)
    first = min(event.time for event in told if event.pid == pid)
    if named == task or not named and _began_before(pid, first):
      return pid
  raise RuntimeError(
      'A fault must meet a task that runs on this machine and writes events '
      f'to the same model_dir. Received: {task}. Let it run '
      '`tfplugin.estimator.train_and_evaluate`.')


def _began_before(pid: int, moment: float) -> bool:
  """Returns whether a process began in the minutes before its first event.

  This is for a program that sets TF_CONFIG itself: its `environ` lacks it.
  """
  try:
    # After the name, which may contain any character: the state, then 18
    # numbers before the start of the process, in ticks since the boot.
    state, *numbers = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(
        ')')[2].split()
    boot = next(line for line in pathlib.Path('/proc/stat').read_text(
        ).splitlines() if line.startswith('btime '))
  except (OSError, StopIteration):
    return False
  began = float(boot.split()[1]) + (
      int(numbers[18]) / os.sysconf('SC_CLK_TCK'))
  # The time of the boot is rounded to seconds.
  return state != 'Z' and 0.0 <= moment + 1.0 - began < _START_LIMIT_SECS


def _task_of(pid: int) -> str:
  """Returns the task in the environment of a process; empty without one."""
  try:
    variables = pathlib.Path(f'/proc/{pid}/environ').read_bytes().split(b'\0')
  except OSError:
    return ''
  for variable in variables:
    name, _, value = variable.partition(b'=')
    if name == b'TF_CONFIG':
      task = json.loads(value).get('task', {})
      return f'{task.get("type")}:{task.get("index", 0)}'
  return ''
