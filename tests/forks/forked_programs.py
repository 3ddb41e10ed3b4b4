# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Programs that are forked where TensorFlow is imported already.

Importing TensorFlow takes seconds of a processor, and a cluster has up to six
processes: more than half of what its test takes. A process of its own imports
it once, and forks for each program. What is forked is a process like any other,
with a number, a parent, streams and an environment of its own. What a program
does before and while it imports TensorFlow is not tried in it, and others see
the command and the environment of the process that forked.
"""

import atexit
import contextlib
import ctypes
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading

import psutil

_ZYGOTE = pathlib.Path(__file__).with_name('zygote.py')
_PR_SET_CHILD_SUBREAPER = 36
# Read when TensorFlow is imported: a program with others is not forked.
_READ_AT_IMPORT = ('CUDA_VISIBLE_DEVICES', 'PYTHONHASHSEED', 'PYTHONWARNINGS',
                   'TF_CPP_MIN_LOG_LEVEL', 'TF_ENABLE_ONEDNN_OPTS',
                   'TF_USE_LEGACY_KERAS')
_POPEN = subprocess.Popen


class Zygote:
  """The process that forks; it is started when it is first asked.

  Attributes:
    pid: Its number; None before it is started.
  """

  def __init__(self):
    self.pid = None
    self._process = self._connection = None
    self._lock = threading.Lock()

  def fork(self, request, streams):
    """Starts a program; returns its number, that of a child of this process.

    Args:
      request: See `zygote.py`.
      streams: The descriptors of its standard input, output and error.
    """
    with self._lock, _adopting():
      if self._process is None:
        self._start()
      socket.send_fds(self._connection, [json.dumps(request).encode()], streams)
      return int(self._connection.recv(20))

  def end(self):
    """Ends it; the programs that it has forked go on."""
    self._connection.close()
    self._process.wait()

  def _start(self):
    self._connection, its = socket.socketpair(socket.AF_UNIX,
                                              socket.SOCK_SEQPACKET)
    paths = os.pathsep.join(filter(None, sys.path))
    with its:
      self._process = _POPEN(
          [sys.executable, str(_ZYGOTE), str(its.fileno())],
          env={**os.environ, 'PYTHONPATH': paths}, pass_fds=[its.fileno()],
          start_new_session=True)
    self.pid = self._process.pid
    atexit.register(self.end)


_zygote = Zygote()


class Popen(subprocess.Popen):
  """A program of this interpreter is forked; any other is executed."""

  def __init__(self, args, *others, **kwargs):
    self._in_new_session = kwargs.get('start_new_session', False)
    super().__init__(args, *others, **kwargs)

  def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds,
                     cwd, env, *others):
    env = dict(os.environ if env is None else env)
    env.pop('TF_NUM_INTEROP_THREADS', None)  # For tests only: conftest.py.
    if (isinstance(args, str) or args[0] != sys.executable or pass_fds or
        args[1].startswith('-') and args[1] not in ('-c', '-m') or
        any(env.get(n) != os.environ.get(n) for n in _READ_AT_IMPORT)):
      super()._execute_child(args, executable, preexec_fn, close_fds, pass_fds,
                             cwd, env, *others)
      return
    # p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite.
    ends = others[3:9]
    streams = [own if end == -1 else end
               for own, end in enumerate((ends[0], ends[3], ends[5]))]
    self.pid = _zygote.fork({
        'command': [str(argument) for argument in args[1:]],
        'environment': env, 'directory': str(cwd or os.getcwd()),
        # A .pth file may have led to another environment's packages.
        'path': [path for path in sys.path
                 if path.startswith((sys.prefix, sys.base_prefix)) or
                 path.endswith('site-packages')],
        'in_new_session': self._in_new_session}, streams)
    self._child_created = True
    self._close_pipe_fds(*ends)


@contextlib.contextmanager
def forking():
  """Lets `subprocess` fork programs, for a while."""
  subprocess.Popen = Popen
  try:
    yield
  finally:
    subprocess.Popen = _POPEN


def left():
  """Returns the processes that this one has started and that have not ended."""
  return [process for process in psutil.Process().children(recursive=True)
          if process.pid != _zygote.pid]


@contextlib.contextmanager
def _adopting():
  """Makes this process the parent of what is forked twice below it."""
  prctl = ctypes.CDLL(None).prctl
  assert prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
  try:
    yield
  finally:
    assert prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) == 0
