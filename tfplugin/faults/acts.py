# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Actions of the faults on a process or a checkpoint.

An outage of disk space or of the network lasts for some seconds. The kernel
makes it for one process of this user, and undoes it. No other process on the
machine has less space or network.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import resource
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable

from tfplugin.distribute import cluster_config
from tfplugin.events import clock
from tfplugin.events import event_files
from tfplugin.events import record
from tfplugin.faults import host_names
from tfplugin.faults import language
from tfplugin.faults import links

# From the start of a program until its first event: it imports TensorFlow.
_START_LIMIT_SECS = 600.0
# A connection that a process opens during an outage is changed within this.
_RENEW_SECS = 0.02
_SIGNALS = {'kill': signal.SIGKILL, 'terminate': signal.SIGTERM,
            'stop': signal.SIGSTOP, 'new_address': signal.SIGKILL,
            'upgrade': signal.SIGTERM}


class InjectedError(RuntimeError):
  """The exception of the fault `raise`."""


def send(fault: language.Fault, pid: int) -> None:
  """Injects a fault that acts from outside into a process.

  Raises OSError if the process does not allow it, and RuntimeError if the
  signal would have no effect.
  """
  if fault.kind in language.OUTAGES:
    begin_outage(fault.kind, pid, fault.secs, fault.strength)
    return
  number = _SIGNALS[fault.kind]
  if pid == os.getpid() == 1 and (
      number in (signal.SIGKILL, signal.SIGSTOP) or
      signal.getsignal(number) == signal.SIG_DFL):
    raise RuntimeError(
        f'The fault "{fault}" would have no effect: Linux keeps the first '
        'process of a container from ending or stopping itself. Start the '
        'container with an init, e.g. `docker run --init`.')
  if fault.kind == 'stop':
    # A stopped process cannot wake up by itself.
    _later(fault.secs, 'kill', '-CONT', str(pid))
  if fault.kind == 'new_address':
    host_names.move(fault.task)
  os.kill(pid, number)


def move_clock(secs: float) -> None:
  """Moves the clock of this process, as its Python code sees it."""
  before = time.time
  time.time = lambda: before() + secs


def make_readonly(directory: str, secs: float) -> None:
  """Makes a directory read-only for this user's processes, for some seconds.

  The error is `Permission denied`; for root, who may write everywhere,
  `Read-only file system`. Raises OSError if root may not mount.
  """
  mode = os.stat(directory).st_mode
  os.chmod(directory, mode & ~0o222)
  undo = ['chmod', f'{stat.S_IMODE(mode):o}', directory]
  if os.access(directory, os.W_OK):
    os.chmod(directory, mode)
    undo = ['umount', '-l', directory]
    mounted = subprocess.run(['mount', '-o', 'bind,ro', directory, directory],
                             stderr=subprocess.PIPE, text=True, check=False)
    if mounted.returncode:
      raise OSError(
          'A fault `readonly` needs a user other than root, or a root that may '
          f'mount. Received: {mounted.stderr.strip()}. Start the run as '
          'another user.')
  # It ends also if this process does not live until then.
  _later(secs, *undo)


def _later(secs: float, *command: str) -> None:
  """Runs a command after some seconds."""
  subprocess.Popen(
      ['sh', '-c', 'sleep "$0"; exec "$@"', f'{secs:g}', *command],
      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
      stderr=subprocess.DEVNULL, start_new_session=True)


def damage(model_dir: str) -> None:
  """Truncates the files of the newest checkpoint, if any, to half."""
  indices = pathlib.Path(model_dir).glob('*.ckpt-*.index')
  newest = max(indices, key=lambda path: path.stat().st_mtime_ns, default=None)
  if newest is not None:
    for path in newest.parent.glob(f'{newest.stem}.data-*'):
      os.truncate(path, path.stat().st_size // 2)


def process_of(task: str, model_dir: str) -> int:
  """Returns the process of another task, e.g. `ps:0`, on this machine.

  The task's events in `model_dir` name it. Raises RuntimeError if there is
  none, if the process is not that task, or if its `TF_CONFIG` is wrong.
  """
  logged = event_files.read_file(event_files.path_of(model_dir, task)).events
  if logged:
    pid = logged[-1].pid
    names = _names_of(pid)
    first, *_ = record.by_process(logged)[-1]
    if task in names or not names and _began_before(pid, first.time):
      return pid
  raise RuntimeError(
      'A fault must be of a task that runs on this machine and writes events '
      f'to the same model_dir. Received: {task}. Let it call '
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
    uptime = float(pathlib.Path('/proc/uptime').read_text().split()[0])
  except OSError:
    return False
  began = clock.now() - uptime + int(numbers[18]) / os.sysconf('SC_CLK_TCK')
  # Both are rounded.
  return state != 'Z' and 0.0 <= moment + 1.0 - began < _START_LIMIT_SECS


def _names_of(pid: int) -> set[str]:
  """Returns the names of a process's task by its environment; may be empty.

  Events use `chief:0` for the only task of a cluster, and where a strategy has
  renamed a `master`.
  """
  try:
    variables = pathlib.Path(f'/proc/{pid}/environ').read_bytes().split(b'\0')
  except OSError:
    return set()
  value = dict(v.partition(b'=')[::2] for v in variables).get(
      cluster_config.VARIABLE.encode(), b'').decode(errors='replace')
  try:
    reading = cluster_config.interpret(value)
  except ValueError as error:
    raise RuntimeError(f'A fault cannot find the task of process {pid}: '
                       f'{error}') from error
  task = reading.task or reading.only_task
  if task is None:
    return set()
  is_chief = task.type == 'master' or reading.only_task is not None
  return {task.name} | ({'chief:0'} if is_chief else set())


class Outage:
  """A running outage. Calling it ends it, and so does its `thread` in time."""

  def __init__(self, secs: float, undo: Callable[[], None],
               renew: Callable[[], None] = lambda: None):
    """Starts a thread that calls `renew`, and `undo` after some seconds."""
    self._end = time.monotonic() + secs
    self._undo = undo
    self._renew = renew
    self._is_over = threading.Event()
    self.thread = threading.Thread(target=self._last, daemon=True)
    self.thread.start()

  def _last(self) -> None:
    while not self._is_over.wait(min(_RENEW_SECS, self._left_secs())) and (
        self._left_secs()):
      with contextlib.suppress(OSError):  # The process ends, or forks.
        self._renew()
    self._undo()

  def _left_secs(self) -> float:
    return max(0.0, self._end - time.monotonic())

  def __call__(self) -> None:
    """Ends the outage now, if it has not ended."""
    self._is_over.set()
    self.thread.join()


def begin_outage(kind: str, pid: int, secs: float,
                 strength: float | None = None) -> Outage:
  """Begins an outage for some seconds, if this process lives until then."""
  if kind == 'fill':
    return Outage(secs, _fill(pid))
  changed = links.Links(pid, {
      'cut': links.cut, 'partition': links.partition,
      'slow_link': lambda: links.slow(1000 * strength),
      'lossy_link': lambda: links.lossy(strength)}[kind]())
  return Outage(secs, changed.undo, changed.renew)


def _fill(pid: int) -> Callable[[], None]:
  """Keeps the files of a process from growing: `File too large`."""
  limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
  resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, limits[1]))

  def undo():
    with contextlib.suppress(ProcessLookupError):
      resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)

  return undo
