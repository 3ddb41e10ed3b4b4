# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Imports TensorFlow once, and forks for each program that it is handed.

Nothing is run before a fork, so that there are no threads of TensorFlow. A
program's parent is the process that asked, which adopts it for that: see
`forked_programs`. usage: zygote.py DESCRIPTOR_OF_A_SOCKET
"""

import contextlib
import gc
import json
import os
import runpy
import signal
import socket
import sys

# The program, its arguments and its environment; more than any has.
_MOST_BYTES = 1 << 18


def serve(connection):
  """Forks for each request; in a fork, returns what to run."""
  while True:
    message, streams, _, _ = socket.recv_fds(connection, _MOST_BYTES, 3)
    if not message:
      os._exit(0)
    read, write = os.pipe()
    child = os.fork()
    if not child:
      # The one in between ends, and who asked is given its child.
      program = os.fork()
      if program:
        os.write(write, str(program).encode())
        os._exit(0)
      connection.close()
      os.close(read)
      os.close(write)
      return _become(json.loads(message), *streams)
    os.waitpid(child, 0)
    connection.send(os.read(read, 20))
    for descriptor in (read, write, *streams):
      os.close(descriptor)


def _become(request, *streams):
  """Makes this process what `exec` would have made of it."""
  if request['in_new_session']:
    os.setsid()
  for number, stream in enumerate(streams):
    os.dup2(stream, number)
    os.close(stream)
  signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # As Python does.
  signal.signal(signal.SIGINT, signal.default_int_handler)
  os.environ.clear()
  os.environ.update(request['environment'])
  os.chdir(request['directory'])
  paths = os.environ.get('PYTHONPATH', '').split(os.pathsep)
  sys.path[:] = [path for path in paths if path] + request['path']
  return request['command']


def run(command):
  """Runs a program as the interpreter would."""
  if command[0] == '-m':
    sys.argv = command[1:]
    sys.path.insert(0, os.getcwd())
    runpy.run_module(command[1], run_name='__main__', alter_sys=True)
  elif command[0] == '-c':
    sys.argv = ['-c', *command[2:]]
    sys.path.insert(0, '')
    exec(compile(command[1], '<string>', 'exec'), {'__name__': '__main__'})
  else:
    sys.argv = command
    sys.path.insert(0, os.path.dirname(os.path.abspath(command[0])))
    runpy.run_path(command[0], run_name='__main__')


if __name__ == '__main__':
  sys.path.pop(0)  # The directory of this file is in no program's path.
  gc.disable()  # An import makes no garbage; looking for it takes its time.
  import tensorflow as tf
  with contextlib.suppress(ImportError):
    import tfplugin  # Which gives Estimator to TensorFlow since 2.16.
    assert tfplugin
  assert tf.estimator.Estimator
  gc.enable()
  # Nobody looks for garbage in what was imported, not when a program ends
  # either: that alone would take most of the time of a short one.
  gc.freeze()
  run(serve(socket.socket(fileno=int(sys.argv[1]))))
