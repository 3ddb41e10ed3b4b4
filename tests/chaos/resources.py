# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the processes of a run hold, every ten seconds: a leak would grow.

  python -m tests.chaos.resources PID DIRECTORY FILE
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

import psutil

_INTERVAL_SECS = 10.0
# A process has made all that it needs by then.
_SETTLED_SECS = 600.0
# What is told is the median of this time.
_SMOOTH_SECS = 60.0
_TEXT = """\
For each task, the process with the longest life is shown. The numbers are: ten
minutes after its start, at its end, and the largest between the two. The
first two are medians of a minute. "Servers lost" counts the parameter servers
that ended in this time. A worker's memory rises with each new session, and then
falls in part.

| task | lived, minutes | servers lost | memory, MB | descriptors | threads |
| --- | --- | --- | --- | --- | --- |
{rows}

The directory of the run had {first} files after ten minutes, and {last} at the
end: a task that starts begins a new file for TensorBoard. Its
[report](report.md) took {report_secs:.0f} s, and has {report_mb:.1f} MB."""


@dataclasses.dataclass(frozen=True)
class Sample:
  """What a process holds at a time.

  Attributes:
    time: Seconds since the epoch.
    pid: The process.
    memory: Resident bytes.
    descriptors: How many files, sockets and so on are open.
    threads: How many there are.
    files: How many files the directory of the run has.
  """

  time: float
  pid: int
  memory: int
  descriptors: int
  threads: int
  files: int


@contextlib.contextmanager
def sampled(directory: pathlib.Path) -> Iterator[None]:
  """Samples this process and its children into `directory`."""
  sampler = subprocess.Popen([
      sys.executable, '-m', 'tests.chaos.resources', str(os.getpid()),
      str(directory), str(_path(directory))])
  try:
    yield
  finally:
    sampler.terminate()
    sampler.wait()


def read(directory: pathlib.Path) -> list[Sample]:
  """Returns the samples that were made into `directory`."""
  return [Sample(**json.loads(line))
          for line in _path(directory).read_text().splitlines()]


def text(directory: pathlib.Path, tasks: Mapping[int, tuple[str, float]],
         lost: Iterable[float]) -> str:
  """Returns the text about the resources of a run; writes its report.

  Args:
    directory: With the samples, and the run's `model`.
    tasks: See `rows`.
    lost: See `rows`.
  """
  samples = read(directory)
  begin = time.monotonic()
  subprocess.run([sys.executable, '-m', 'tfplugin.bin.report',
                  str(directory / 'model')], check=True, capture_output=True)
  secs = time.monotonic() - begin
  report = directory / 'model' / 'report' / 'report.html'
  first, last = files(samples)
  return _TEXT.format(
      # The launcher is the first that is sampled.
      rows='\n'.join(rows(
          samples, {samples[0].pid: ('launcher', 0.0), **tasks}, lost)),
      first=first, last=last, report_secs=secs,
      report_mb=report.stat().st_size / 1e6)


def rows(samples: Iterable[Sample], tasks: Mapping[int, tuple[str, float]],
         lost: Iterable[float]) -> Iterator[str]:
  """Yields a row for each task: its process that lived longest.

  Args:
    samples: Of a run.
    tasks: The task of each process, and when it began to be that task. A spare
      process is older.
    lost: When parameter servers ended.
  """
  of_task = {}
  for sample in samples:
    task, began = tasks.get(sample.pid, ('', 0.0))
    if task and sample.time >= began and sample.memory:
      of_task.setdefault(task, {}).setdefault(sample.pid, []).append(sample)
  for task in sorted(of_task):
    longest = max(of_task[task].values(), key=lambda own: own[-1].time -
                  own[0].time)
    begin, end = longest[0].time, longest[-1].time
    if end - begin > _SETTLED_SECS:
      settled = [s for s in longest
                 if 0 <= s.time - begin - _SETTLED_SECS < _SMOOTH_SECS]
      rest = [s for s in longest if s.time >= begin + _SETTLED_SECS]
      last = [s for s in rest if s.time > end - _SMOOTH_SECS]
      num_lost = sum(begin + _SETTLED_SECS < at < end for at in lost)
      yield f'| {task} | {(end - begin) / 60:.0f} | {num_lost} | ' + ' | '.join(
          f'{_median(settled, field) / unit:.0f}, '
          f'{_median(last, field) / unit:.0f}, '
          f'{max(getattr(s, field) for s in rest) / unit:.0f}'
          for field, unit in (('memory', 1e6), ('descriptors', 1),
                              ('threads', 1))) + ' |'


def files(samples: Iterable[Sample]) -> tuple[int, int]:
  """Returns how many files there were when all had settled, and at the end."""
  samples = list(samples)
  settled = [s for s in samples
             if s.time - samples[0].time >= _SETTLED_SECS]
  return settled[0].files, samples[-1].files


def _median(samples: Iterable[Sample], field: str) -> float:
  return statistics.median(getattr(sample, field) for sample in samples)


def _path(directory: pathlib.Path) -> pathlib.Path:
  return directory / 'resources.jsonl'


def main(pid: int, directory: pathlib.Path, path: pathlib.Path) -> None:
  """Writes a line for each process, until the first of them has ended."""
  root = psutil.Process(pid)
  with path.open('a', buffering=1) as file:
    while root.is_running() and root.status() != psutil.STATUS_ZOMBIE:
      num_files = sum(len(names) for *_, names in os.walk(directory))
      for process in (root, *root.children(recursive=True)):
        with contextlib.suppress(psutil.Error), process.oneshot():  # Has ended.
          sample = Sample(
              time.time(), process.pid, process.memory_info().rss,
              process.num_fds(), process.num_threads(), num_files)
          file.write(json.dumps(dataclasses.asdict(sample)) + '\n')
      time.sleep(_INTERVAL_SECS)


if __name__ == '__main__':
  main(int(sys.argv[1]), *map(pathlib.Path, sys.argv[2:]))
