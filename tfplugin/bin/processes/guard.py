# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Program that ends a cluster's processes after their launcher has died.

It imports only the standard library. Each role of a local cluster leads a
process group and carries a mark in its environment, which its children inherit.
The launcher passes the mark as the argument, and the groups on standard input,
one command a line:

    watch 4711
    forget 4711

Standard input ends when the launcher ends, even by SIGKILL. Then every group
still watched gets SIGKILL and, where /proc exists, every process with the mark.
Neither a role nor a child of a role remains.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import sys
import time
from collections.abc import Iterable

# The environment variable with the marks, the outermost launcher's first.
MARK_VARIABLE = 'TFPLUGIN_CLUSTERS'
_ROUNDS = 50
# Searches in a row without a result: a starting process has no environment for
# a moment.
_EMPTY_LOOKS = 2


def watched_groups(lines: Iterable[str]) -> set[int]:
  """Returns the groups that are still watched after the commands in `lines`."""
  groups = set()
  for line in lines:
    command, _, group = line.partition(' ')
    if command == 'watch':
      groups.add(int(group))
    else:
      groups.discard(int(group))
  return groups


def marked_processes(mark: str) -> list[int]:
  """Returns the ids of the processes whose environment carries `mark`."""
  found = []
  for entry in pathlib.Path('/proc').glob('[0-9]*'):
    # The process may have ended, or belong to another user.
    with contextlib.suppress(OSError):
      for variable in (entry / 'environ').read_bytes().split(b'\0'):
        name, _, value = variable.decode(errors='replace').partition('=')
        if name == MARK_VARIABLE and mark in value.split(','):
          found.append(int(entry.name))
  return found


def kill_marked(mark: str) -> None:
  """Sends SIGKILL to every process with `mark` until none is left."""
  empty_looks = 0
  for _ in range(_ROUNDS):
    processes = marked_processes(mark)
    empty_looks = 0 if processes else empty_looks + 1
    if empty_looks == _EMPTY_LOOKS:
      return
    for process in processes:
      with contextlib.suppress(OSError):
        os.kill(process, signal.SIGKILL)
    # A process may have started another one since the search.
    time.sleep(0.02)


def main() -> None:
  """Waits for the launcher's end and ends its remaining processes."""
  # Only the launcher's end may end this program.
  for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
  for group in watched_groups(sys.stdin):
    with contextlib.suppress(OSError):
      os.killpg(group, signal.SIGKILL)
  kill_marked(sys.argv[1])


if __name__ == '__main__':
  main()
