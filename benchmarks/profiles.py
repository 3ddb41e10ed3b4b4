# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where a step's time goes, for the rows of docs/speed.md that miss their aim.

usage: python -m benchmarks.profiles

Each case is a step beside its peer's, in a process of its own. A traced step
gives the time of every op; the table has the sums by type, medians of the
steps. Ops run at the same time, so that a sum is more than the step's time.
Writes benchmarks/results/profiles.json and a part of docs/speed.md.
"""

from __future__ import annotations

import collections
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import Callable
from typing import NamedTuple

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

from benchmarks import machine
from benchmarks import page_part

_STEPS = 15
_SHOWN = 6
# What is in no graph: a tensor from another process, and edges between devices.
_RECEIVED, _CONTROL = 'RecvTensor', 'control edges'


class Case(NamedTuple):
  """A row that misses its aim, or has none that it could miss.

  Attributes:
    title: On the page.
    ours: What it calls our side.
    peer: What it calls the other one.
    steps: Makes both steps, as (session, op).
  """

  title: str
  ours: str
  peer: str
  steps: Callable[[], Any]


def _dense(kind):
  def steps():
    import tensorflow as tf

    from benchmarks import clipping_benchmark
    if kind == 'v1':
      tf.compat.v1.disable_v2_behavior()
    return [clipping_benchmark.dense_step(norm, 1.0) for norm in (1.0, None)]
  return steps


def _sparse():
  from benchmarks import clipping_benchmark
  return [clipping_benchmark.sparse_step(norm, 10**7) for norm in (1.0, None)]


def _drop_stale():
  from benchmarks import drop_stale_benchmark
  return [drop_stale_benchmark.step(1, 1000, wrap) for wrap in (True, False)]


def _towers(model):
  def steps():
    from benchmarks import towers_benchmark
    return towers_benchmark.steps(
        model, ('towers', 'CentralStorageStrategy'))
  return steps


def _elastic():
  """One worker and one server over gRPC, both in this process."""
  from benchmarks import elastic_benchmark
  return elastic_benchmark.steps_here(
      ('optimizer 1', 'async'))


def _exchanges():
  """The model of the network's benchmark; a worker and a server are here."""
  import tensorflow as tf

  from benchmarks import trained
  from benchmarks.network import cells
  from benchmarks.network import models
  cluster, server = trained.cluster_here()
  sides = []
  for exchange in ('float16', 'plain'):
    with tf.Graph().as_default() as graph, graph.container(exchange):
      built = models.build(cells.elastic(1, exchange), cluster, 0)
      sides.append((trained.start_session(built, server, 0, True), built.step))
  return sides


CASES: Mapping[str, Case] = {
    'dense': Case('Dense clip, all rows beyond the bound', 'clipping', 'SGD',
                  _dense('v2')),
    'dense_v1': Case('Dense clip, all rows beyond the bound, reference '
                     'variables',
                     'clipping', 'SGD', _dense('v1')),
    'sparse': Case('Sparse clip of 4,096 ids in 1e+07 rows, all beyond the '
                   'bound',
                   'clipping', 'SGD', _sparse),
    'drop_stale': Case('Drop stale, Adam, one variable of [1000, 1000]',
                       'drop stale', 'Adam', _drop_stale),
    'towers_mlp': Case('Towers, 2 devices, MLP', 'towers',
                       'CentralStorageStrategy', _towers('mlp')),
    'towers_cnn': Case('Towers, 2 devices, CNN', 'towers',
                       'CentralStorageStrategy', _towers('cnn')),
    'elastic': Case('Elastic optimizer, period 1', 'elastic',
                    'asynchronous SGD', _elastic),
    'exchange': Case('A step of the MLP of 7.45 MB, with an exchange in '
                     'float16', 'float16', 'float32', _exchanges),
}


def measure(name: str) -> list[dict[str, Any]]:
  """Returns, for each side, a step's milliseconds and its ops by type.

  Args:
    name: Of a case.
  """
  sides = CASES[name].steps()
  found = [[] for _ in sides]
  for turn in range(_STEPS + 1):
    for (session, step), rounds in zip(sides, found):
      traced = _traced(session, step)
      if turn:  # The first one is slower.
        rounds.append(traced)
  return [{'step_ms': [ms for ms, _ in rounds],
           'ops_ms': _medians([ops for _, ops in rounds]),
           'counts': dict(rounds[0][1]['counts'])} for rounds in found]


def _traced(session, step):
  """Runs a step; returns its milliseconds, and those of its ops by type."""
  import tensorflow as tf
  tf1 = tf.compat.v1
  begin = time.perf_counter()
  session.run(step)
  ms = (time.perf_counter() - begin) * 1e3
  metadata = tf1.RunMetadata()
  session.run(step, options=tf1.RunOptions(
      trace_level=tf1.RunOptions.FULL_TRACE), run_metadata=metadata)
  ops, counts = collections.Counter(), collections.Counter()
  for device in metadata.step_stats.dev_stats:
    for node in device.node_stats:
      kind = _kind(node)
      ops[kind] += (node.op_end_rel_micros - node.op_start_rel_micros) / 1e3
      counts[kind] += 1
  return ms, {'ops': ops, 'counts': counts}


def _kind(node):
  """The type of an op, also of one in a branch, which the graph lacks."""
  if node.node_name.startswith(_RECEIVED):
    return _RECEIVED
  # Of an op that oneDNN computes, the name without what says so.
  found = re.search(r' = (?:_Mkl(?:Native)?)?(\w+)\(', node.timeline_label)
  return found.group(1) if found else _CONTROL


def _medians(rounds):
  kinds = sorted({kind for each in rounds for kind in each['ops']})
  return {kind: statistics.median(each['ops'].get(kind, 0.0)
                                  for each in rounds) for kind in kinds}


def _lines(results: page_part.Results) -> Iterator[str]:
  yield (f'The milliseconds of the ops in a step, and their number, by type of '
         f'op: medians of {_STEPS} traced steps. Ops run at the same time, '
         'so their sum may be more than the step. '
         '`python -m benchmarks.profiles` on '
         f'{machine.sentence(results["about"])}')
  for name, case in CASES.items():
    if name in results['cases']:
      yield from _case(case, results['cases'][name])


def _case(case, sides) -> Iterator[str]:
  ours, peer = sides
  yield from ('', f'{case.title}, compared with {case.peer}:')
  kinds = sorted({*ours['ops_ms'], *peer['ops_ms']}, key=lambda kind: -max(
      side['ops_ms'].get(kind, 0.0) for side in sides))
  rows = [(f'`{kind}`', [_shown(side, [kind]) for side in sides])
          for kind in kinds[:_SHOWN]]
  rows.append((f'{len(kinds) - _SHOWN} others', [
      _shown(side, kinds[_SHOWN:]) for side in sides]))
  rows.append(('the step', [
      page_part.with_spread(side['step_ms']) for side in sides]))
  yield from page_part.table('ms (ops)', [case.ours, case.peer], rows)


def _shown(side, kinds):
  count = sum(side['counts'].get(kind, 0) for kind in kinds)
  total = sum(side['ops_ms'].get(kind, 0.0) for kind in kinds)
  return f'{total:.3g} ({count})' if count else None


PART = page_part.PagePart(
    'profiles', 'Where the time goes',
    'Not measured yet: `python -m benchmarks.profiles` writes this part.',
    _lines)


def main() -> None:
  """Measures every case, and writes the file and the part."""
  about, cases = machine.about(), {}
  for name in CASES:
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-m', 'benchmarks.profiles', name],
        cwd=machine.ROOT, stdout=subprocess.PIPE, text=True, check=True)
    cases[name] = json.loads(done.stdout.splitlines()[-1])
    print(name, flush=True)
  PART.write({'about': about, 'cases': cases})


if __name__ == '__main__':
  if sys.argv[1:]:
    print(json.dumps(measure(sys.argv[1])), flush=True)
    os._exit(0)  # Servers in this process have no end.
  main()
