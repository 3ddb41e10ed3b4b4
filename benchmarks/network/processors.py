# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A part of the processors for each host: control groups of the kernel.

Hosts on one machine share its processors. Where one waits, the others would be
faster than they are beside it, as no host of a network is: so each has a part
of its own, which nobody else can give it more of.
"""

from __future__ import annotations

import errno
import os
import pathlib
import time
from collections.abc import Sequence
from typing import Optional

# Where the controller of processors is, of version 1 and 2 of control groups.
_FIRST = pathlib.Path('/sys/fs/cgroup/cpu')
_SECOND = pathlib.Path('/sys/fs/cgroup')
# What is left of a part after that is lost: a step takes about as long.
_TURN_USECS = 5000
_EMPTY_SECS = 10.0


def missing() -> Optional[str]:
  """Returns why hosts cannot have a part of the processors, or None."""
  if (_FIRST / 'cpu.cfs_quota_us').exists():
    folder, where = _FIRST, _FIRST
  elif 'cpu' in _read(_SECOND / 'cgroup.subtree_control').split():
    folder, where = _SECOND, _SECOND / 'cgroup.procs'
  else:
    return 'the kernel offers no control groups with a processors\' quota here'
  return None if os.access(where, os.W_OK) else f'{folder} cannot be written'


def make(name: str, part: float) -> None:
  """Makes a group.

  Args:
    name: Its name.
    part: Of one processor's time; 2 are two processors.
  """
  folder = _folder(name)
  folder.mkdir()
  quota = round(part * _TURN_USECS)
  if folder.parent == _FIRST:
    (folder / 'cpu.cfs_period_us').write_text(f'{_TURN_USECS}')
    (folder / 'cpu.cfs_quota_us').write_text(f'{quota}')
  else:
    (folder / 'cpu.max').write_text(f'{quota} {_TURN_USECS}')


def command(name: str, argv: Sequence[str]) -> list[str]:
  """Returns `argv` as a command whose processes are in a group.

  Args:
    name: Of a group that `make` has made.
    argv: A command.
  """
  return ['sh', '-c', f'echo $$ > {_folder(name)}/cgroup.procs && exec "$@"',
          'sh', *argv]


def remove(name: str) -> None:
  """Removes a group, once its processes have ended; one that is none is well.

  Args:
    name: Of the group.
  """
  limit = time.time() + _EMPTY_SECS
  while True:
    try:
      _folder(name).rmdir()
      return
    except FileNotFoundError:
      return
    except OSError as e:
      # The kernel takes killed processes out of it a little later.
      if e.errno != errno.EBUSY or time.time() > limit:
        raise
    time.sleep(0.05)


def names(prefix: str) -> list[str]:
  """Returns the groups that there are.

  Args:
    prefix: Of their names.
  """
  return sorted(path.name for path in _folder('').glob(f'{prefix}*'))


def _folder(name: str) -> pathlib.Path:
  first = _FIRST if (_FIRST / 'cpu.cfs_quota_us').exists() else _SECOND
  return first / name


def _read(path: pathlib.Path) -> str:
  return path.read_text() if path.exists() else ''
