# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where the time of building goes: into operations, and who makes them.

usage: python -m benchmarks.growth.building

Builds a model of 300 variables in each way, in turn, and counts what is in its
graph; then once more under a profile, for what tfplugin's own functions take of
it, without those that they call. Writes benchmarks/results/building.json and a
part of docs/speed.md.
"""

from __future__ import annotations

import cProfile
import gc
import os
import pathlib
import pstats
import statistics
import threading
import time
from collections.abc import Iterator
from typing import Any

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import tensorflow as tf

import tfplugin
from benchmarks import machine
from benchmarks import page_part
from benchmarks.growth import cells
from benchmarks.growth import forms

_PART = next(part for part in cells.PARTS if part.name == 'variables')
_SIZE = 300
_ROUNDS = 5
_MAKES_OPERATION, _WAITS = 'TF_FinishOperation', 'acquire'
_OWN = str(pathlib.Path(tfplugin.__file__).parent)


def measure(size: int = _SIZE, rounds: int = _ROUNDS) -> dict[str, Any]:
  """Returns, by the way to train, what building takes and makes.

  Args:
    size: Variables of the model; of fewer, where a way is slower than others.
    rounds: How often each is built.
  """
  forms.make_devices(2)
  sizes = {curve.name: min(size, curve.largest or size)
           for curve in _PART.curves}
  peers = {name: (cells.BARE, of) for name, of in sizes.items()}
  found = {}
  for turn in range(rounds + 1):
    for name, of in {*sizes.items(), *peers.values()}:
      built = _built(name, of)
      if turn:  # The first of all is slower.
        found.setdefault((name, of), []).append(built)
  profiled = {key: _profiled(*key) for key in found}
  return {name: {
      'of': of, 'secs': [each['secs'] for each in found[name, of]],
      'bare_secs': [each['secs'] for each in found[peers[name]]],
      'bare_operations': profiled[peers[name]]['operations'],
      'variables': found[name, of][0]['variables'],
      **profiled[name, of]} for name, of in sizes.items()}


def _built(name, size):
  gc.collect()
  with tf.Graph().as_default() as graph:
    begin = time.perf_counter()
    forms.build(name, forms.small_layers(size))
    secs = time.perf_counter() - begin
    variables = {v.ref() for key in graph.collections
                 for v in graph.get_collection(key)
                 if isinstance(v, tf.Variable)}
    return {'secs': secs, 'variables': len(variables)}


def _profiled(name, size):
  """The operations, and the part of the time in tfplugin's own functions.

  That is without what they call. Of the operations the graph forgets some: the
  arguments of functions, and what was made in vain.
  """
  stats = None
  for each in _profiles(name, size):
    stats = pstats.Stats(each) if stats is None else stats.add(each)
  operations, own, every = 0, 0.0, 0.0
  for (file, _, function), (_, calls, secs, _, _) in stats.stats.items():
    operations += calls * (_MAKES_OPERATION in function)
    own += secs * file.startswith(_OWN)
    every += secs * (_WAITS not in function)
  return {'operations': operations, 'own': own / every}


def _profiles(name, size):
  """Those of all threads: strategies build in some of their own."""
  profiles = []

  def begin(*args):
    del args
    profiles.append(cProfile.Profile())
    profiles[-1].enable()  # In place of this function.

  threading.setprofile(begin)
  try:
    with tf.Graph().as_default():
      begin()
      forms.build(name, forms.small_layers(size))
      profiles[0].disable()
  finally:
    threading.setprofile(None)
  return profiles


def _lines(results: page_part.Results) -> Iterator[str]:
  yield ('The time to build loss, gradients and train op, with SGD and a '
         'kernel of [4, 4] for each variable. The figures are medians of '
         f'{results["rounds"]} rounds. "Ratio" compares with the bare '
         'optimizer with as many variables. The time grows with the number of '
         'operations. An operation costs about the same in every row, and '
         'more inside a branch. The last column is '
         'the share of tfplugin\'s own functions. '
         f'`python -m benchmarks.growth.building` on '
         f'{machine.sentence(results["about"])}')
  rows = []
  for name, way in results['ways'].items():
    ratios = [own / bare
              for own, bare in zip(way['secs'], way['bare_secs'])]
    rows.append((f'{name}, {way["of"]}', [
        page_part.with_spread(ratios),
        f'{way["operations"] / way["bare_operations"]:.3g}',
        f'{way["operations"]:,}',
        f'{1e6 * statistics.median(way["secs"]) / way["operations"]:.0f}',
        f'{way["variables"]:,}', f'{way["own"]:.1%}']))
  yield from page_part.table(
      'trained with, variables of the model', [
          'time, ratio', 'operations, ratio', 'operations', 'us each',
          'variables', 'in tfplugin'], rows)


PART = page_part.PagePart(
    'building', 'Where the time of building goes',
    'Not measured yet: `python -m benchmarks.growth.building` writes this '
    'part.', _lines)


def main() -> None:
  """Measures, and writes the file and the part."""
  about = machine.about()
  PART.write({'about': about, 'rounds': _ROUNDS, 'ways': measure()})


if __name__ == '__main__':
  main()
