# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Plugin of pytest that runs each module's tests in a forked process.

A TensorFlow server is never freed: its descriptors, threads and memory stay as
long as its process lives. So the process that collects the tests runs none of
them. It forks a child for each module, and another one when a child has grown.
Modules that were imported stay imported, which makes a fork cheap. A child has
a directory for temporary files, which ends with it. Its last test fails if
processes outlive it.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import faulthandler
import multiprocessing
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings

import psutil
import pytest
from _pytest import runner

_PR_SET_PDEATHSIG = 1
# Seconds that pytest-timeout has to end a child before its parent does.
_GRACE_SECS = 30
# Part of a test's time after which a child writes its stacks. pytest-timeout
# writes them, too, but where pytest-xdist shows nothing.
_STACKS = 0.95
# Seconds in which the processes of a child end after it.
_PROCESSES_SECS = 10


@dataclasses.dataclass(frozen=True)
class Usage:
  """Memory, descriptors and threads of a process.

  Attributes:
    mebibytes: Resident memory.
    descriptors: Open files and sockets.
    threads: Threads of Python and of C++.
  """

  mebibytes: int
  descriptors: int
  threads: int

  @classmethod
  def of_this_process(cls) -> Usage:
    process = psutil.Process()
    return cls(process.memory_info().rss >> 20, process.num_fds(),
               process.num_threads())

  def exceeds(self, other: Usage) -> bool:
    return any(mine > limit for mine, limit in zip(
        dataclasses.astuple(self), dataclasses.astuple(other)))


# A test fails if its process holds more after it.
LIMIT = Usage(mebibytes=1536, descriptors=256, threads=300)
# A child that holds more after a test is replaced.
_REPLACED = Usage(mebibytes=1024, descriptors=128, threads=100)


def pytest_addoption(parser):
  parser.addoption(
      '--one-process', action='store_true',
      help='run the tests in this process, for debuggers and tracers')


def pytest_configure(config):
  # A script's shell has what it starts with `&` ignore Ctrl-C, for good.
  if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
  # A tracer, such as a debugger's, belongs to its process.
  if not (config.option.one_process or config.option.usepdb or sys.gettrace()):
    config.pluginmanager.register(ForkedTests(), 'forked-tests')


class ForkedTests:
  """Runs tests in children; where it was forked, it is the child."""

  def __init__(self):
    self._child = None
    self._is_child = False
    self._reports = None

  @pytest.hookimpl(wrapper=True)
  def pytest_make_collect_report(self, collector):
    """Refuses a module that runs TensorFlow when it is imported."""
    num_threads = psutil.Process().num_threads()
    report = yield
    has_more = psutil.Process().num_threads() > num_threads
    if has_more and isinstance(collector, pytest.Module):
      report.outcome = 'failed'
      report.longrepr = (
          f'{collector.nodeid} starts threads when it is imported, which a '
          'forked process lacks. Call TensorFlow in tests or fixtures only.')
    return report

  @pytest.hookimpl(tryfirst=True)
  def pytest_runtest_protocol(self, item, nextitem):
    """Runs a test in a child, and repeats its reports here."""
    if self._is_child:
      self._reports = runner.runtestprotocol(item, log=False, nextitem=nextitem)
      return True
    item.ihook.pytest_runtest_logstart(
        nodeid=item.nodeid, location=item.location)
    if self._child is None:
      self._child = self._fork(item.session)
    is_last = nextitem is None or nextitem.path != item.path
    reports, is_alive = self._child.run(item, None if is_last else nextitem)
    if not is_alive:
      self._child = None
    for report in reports:
      item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(
        nodeid=item.nodeid, location=item.location)
    return True

  @pytest.hookimpl(tryfirst=True, optionalhook=True)
  def pytest_timeout_set_timer(self):
    """Leaves the timer to the child, whose stacks are of interest."""
    return None if self._is_child else True

  def pytest_sessionfinish(self):
    """Ends the child that would run tests after the one that stopped all."""
    if self._child:
      self._child.end()

  def _fork(self, session):
    # Created before a fork: a child would delete what another one left there.
    session.config._tmp_path_factory.getbasetemp()
    directory = tempfile.mkdtemp(prefix='tests-')
    ours, theirs = multiprocessing.Pipe()
    with warnings.catch_warnings():
      # The threads of pytest-xdist wait for messages, and hold no lock.
      warnings.simplefilter('ignore', DeprecationWarning)
      pid = os.fork()
    if pid:
      theirs.close()
      return _Child(pid, ours, directory)
    ours.close()
    self._is_child = True
    tempfile.tempdir = os.environ['TMPDIR'] = directory
    status = 1
    try:
      self._serve(session, theirs, pathlib.Path(directory, 'stacks'))
      status = 0
    finally:
      # Ctrl-C ends a test in the middle, and perhaps the parent as well.
      signal.signal(signal.SIGINT, signal.SIG_IGN)
      with contextlib.suppress(BaseException):
        session._setupstate.teardown_exact(None)
      if status:
        _end_processes(directory)
      os._exit(status)

  def _serve(self, session, connection, stacks):
    # As Ctrl-C: what the test has started ends with it.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
    is_last = False
    while not is_last:
      index, next_index = connection.recv()
      item = session.items[index]
      with _written_when_late(item, stacks):
        item.config.hook.pytest_runtest_protocol(
            item=item, nextitem=next_index and session.items[next_index])
      usage = Usage.of_this_process()
      is_last = next_index is None or usage.exceeds(_REPLACED)
      if is_last:
        try:
          session._setupstate.teardown_exact(None)
        except Exception:  # noqa: BLE001 (a fixture may raise anything)
          self._reports.append(_failure(item, traceback.format_exc()))
      reports = [item.config.hook.pytest_report_to_serializable(
          config=item.config, report=report) for report in self._reports]
      connection.send((reports, usage, not is_last))


class _Child:
  """A process that runs tests one by one."""

  def __init__(self, pid, connection, directory):
    self._pid = pid
    self._connection = connection
    self._directory = directory

  def run(self, item, nextitem):
    """Returns a test's reports, and whether the process can run another."""
    items = item.session.items
    start = time.monotonic()
    try:
      self._connection.send((items.index(item),
                             nextitem and items.index(nextitem)))
      while not self._connection.poll(_limit_secs(item) + _GRACE_SECS):
        os.kill(self._pid, signal.SIGKILL)
      reports, usage, is_alive = self._connection.recv()
    except (EOFError, ConnectionError):
      is_late = time.monotonic() - start >= _limit_secs(item)
      status, stacks = self._wait(), self._stacks()
      _end_processes(self._directory)
      return [_failure(item, (
          f'This test took longer than its {_limit_secs(item):g} s. Where its '
          f'threads were:\n{stacks}' if is_late else
          f'The process of this test ended: {status}. It crashed, or was '
          'killed, as by the kernel when memory is short.'))], False
    reports = [item.config.hook.pytest_report_from_serializable(
        config=item.config, data=report) for report in reports]
    if usage.exceeds(LIMIT):
      reports.append(_failure(item, (
          f'After this test its process holds {usage}, more than {LIMIT}. '
          'Start the servers in a process that ends, or split the test.')))
    if not is_alive:
      left = self.end()
      if left:
        reports.append(_failure(item, (
            f'Tests of {item.path.name} left processes behind, which were '
            f'killed: {left}. End them in the test or in its fixture.')))
    return reports, is_alive

  def _stacks(self):
    """Returns what the process wrote because a test was late."""
    stacks = pathlib.Path(self._directory, 'stacks')
    return stacks.read_text() if stacks.exists() else 'nothing is written'

  def end(self):
    """Waits for its end; returns the commands of processes that it left."""
    self._wait()
    return _end_processes(self._directory)

  def _wait(self):
    """Waits for the end of the process; returns how it ended."""
    self._connection.close()
    status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
    return signal.Signals(-status).name if status < 0 else f'status {status}'


@contextlib.contextmanager
def _written_when_late(item, path):
  """Writes the stacks of all threads just before a test's time is over."""
  with path.open('w') as file:
    faulthandler.dump_traceback_later(_STACKS * _limit_secs(item), file=file)
    try:
      yield
    finally:
      faulthandler.cancel_dump_traceback_later()


def _end_processes(directory):
  """Kills the processes that a child has left; returns their commands."""
  deadline = time.monotonic() + _PROCESSES_SECS
  while _processes(directory) and time.monotonic() < deadline:
    time.sleep(0.02)
  commands = []
  for process in _processes(directory):
    with contextlib.suppress(psutil.NoSuchProcess):
      commands.append(' '.join(process.cmdline())[:200])
      process.kill()
  shutil.rmtree(directory, ignore_errors=True)
  return commands


def _processes(directory):
  """Returns the descendants of a child: its directory's name is in their
  environment.
  """
  found = []
  for process in psutil.process_iter():
    with contextlib.suppress(psutil.Error):
      if process.environ().get('TMPDIR') == directory:
        found.append(process)
  return found


def _limit_secs(item):
  marker = item.get_closest_marker('timeout')
  secs = marker and (marker.args[0] if marker.args
                     else marker.kwargs.get('timeout'))
  return float(secs or item.config.getini('timeout'))


def _failure(item, text):
  return pytest.TestReport(
      item.nodeid, item.location, {}, 'failed', text, 'call')
