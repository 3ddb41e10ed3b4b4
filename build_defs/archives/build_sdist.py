# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds the source archive: the same sources give the same bytes.

usage: build_sdist.py DIRECTORY

setuptools chooses the files (MANIFEST.in); the archive is written anew without
what depends on the builder: times, users, modes and the order of the files.
"""

from __future__ import annotations

import gzip
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

_ROOT = pathlib.Path(__file__).absolute().parents[2]
# The earliest time that a zip archive holds, as setup.py has it for the wheel.
_TIME = 315532800


def normalised(archive: bytes) -> bytes:
  """Returns a .tar.gz with the same files and nothing of its builder.

  Args:
    archive: A .tar.gz.
  """
  plain = io.BytesIO()
  with tarfile.open(fileobj=io.BytesIO(archive)) as old, tarfile.open(
      fileobj=plain, mode='w', format=tarfile.USTAR_FORMAT) as new:
    for member in sorted(old.getmembers(), key=lambda member: member.name):
      kept = tarfile.TarInfo(member.name)
      kept.type, kept.size, kept.mtime = member.type, member.size, _TIME
      kept.mode = 0o755 if member.isdir() else 0o644
      new.addfile(kept, old.extractfile(member))
  packed = io.BytesIO()
  # Without a name, and with a time of 0, in the header.
  with gzip.GzipFile('', 'wb', 9, packed, mtime=0) as stream:
    stream.write(plain.getvalue())
  return packed.getvalue()


def build(tree: pathlib.Path, directory: pathlib.Path) -> pathlib.Path:
  """Writes the archive; returns its path.

  Args:
    tree: Holds setup.py.
    directory: Where the archive is written.
  """
  with tempfile.TemporaryDirectory() as scratch:
    subprocess.run(
        [sys.executable, 'setup.py', '-q', 'egg_info', '--egg-base', scratch,
         'sdist', '--formats=gztar', '-d', scratch],
        cwd=tree, check=True, stdout=subprocess.DEVNULL,
        env={**os.environ, 'PYTHONPATH': '', 'PYTHONDONTWRITEBYTECODE': '1'})
    archive, = pathlib.Path(scratch).glob('*.tar.gz')
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / archive.name
    target.write_bytes(normalised(archive.read_bytes()))
  return target


if __name__ == '__main__':
  print(build(_ROOT, pathlib.Path(sys.argv[1]).absolute()))
