# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lets Bazel run a test file with pytest.

Bazel speaks through environment variables: which shard this is, which tests
were asked for, and where the XML report goes.
"""

from __future__ import annotations

import gc
import os
import pathlib
import sys

import pytest


class _Shard:
  """Selects every `count`-th file, or test of one file, from `index` on.

  What a file's tests share is then made once.
  """

  def __init__(self, index: int, count: int):
    self._index = index
    self._count = count

  def pytest_collection_modifyitems(self, config, items):
    """Drops what other shards run; pytest calls this after the collection."""
    files = list(dict.fromkeys(item.path for item in items))
    mine = [item for number, item in enumerate(items)
            if (files.index(item.path) if files[1:] else number)
            % self._count == self._index]
    chosen = set(map(id, mine))
    config.hook.pytest_deselected(
        items=[item for item in items if id(item) not in chosen])
    items[:] = mine


def _shard(environ) -> list:
  count = int(environ.get('TEST_TOTAL_SHARDS') or 1)
  if count == 1:
    return []
  if 'TEST_SHARD_STATUS_FILE' in environ:
    # The file's existence tells Bazel that sharding is understood.
    pathlib.Path(environ['TEST_SHARD_STATUS_FILE']).touch()
  return [_Shard(int(environ['TEST_SHARD_INDEX']), count)]


def main(argv: list) -> int:
  """Runs pytest on the files in `argv`; returns its exit status."""
  # To import TensorFlow makes no garbage; to look for it took half a second.
  gc.set_threshold(50_000)
  environ = os.environ
  options = ['-p', 'no:cacheprovider', '--rootdir', os.getcwd(),
             '-c', 'pyproject.toml']
  if environ.get('XML_OUTPUT_FILE'):
    options.append('--junitxml=' + environ['XML_OUTPUT_FILE'])
  wanted = environ.get('TESTBRIDGE_TEST_ONLY')
  if wanted:
    options += ['-k', wanted]
  shard = _shard(environ)
  status = pytest.main(options + argv, plugins=shard)
  if status == pytest.ExitCode.NO_TESTS_COLLECTED and (shard or wanted):
    return 0  # All tests of this file belong elsewhere.
  return int(status)


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
