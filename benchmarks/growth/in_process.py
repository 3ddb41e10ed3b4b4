# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a process measures by itself at one size."""

from __future__ import annotations

import functools
import gc
import time
from typing import Callable

import tensorflow as tf

from benchmarks import clipping_benchmark
from benchmarks.growth import cells
from benchmarks.growth import forms

tf1 = tf.compat.v1

_TOWER_VARIABLES = 20
# The time that a round of steps takes at least, in whole periods.
_ROUND_SECS = 0.2

Measures = dict[str, Callable[[], float]]


def measures(part: cells.Part, size: int) -> Measures:
  """Returns, for each curve, a function that measures it once.

  Args:
    part: One that needs no cluster.
    size: Of `part.sizes`.
  """
  names = [curve.name for curve in part.curves_at(size)]
  return {'parameters': _parameters, 'rows': _rows, 'variables': _variables,
          'towers': _towers}[part.name](names, size)


def _parameters(names, size):
  config = forms.make_devices(2)
  return {name: functools.partial(_milliseconds, _step(name, size, config))
          for name in names}


def _step(name, size, config):
  with tf.Graph().as_default():
    tf1.set_random_seed(0)
    built = forms.build(name, forms.square_layers(size))
    session = tf1.Session(config=config)
    session.run(tf1.global_variables_initializer())
    for each in built.starts:
      session.run(each)
    step = session.make_callable(tf.group(built.step))
    step()
    return step


def _milliseconds(step, least_secs=_ROUND_SECS, steps=cells.PERIOD):
  """The mean of steps of one round."""
  begin, count = time.perf_counter(), 0
  while not count or time.perf_counter() - begin < least_secs:
    for _ in range(steps):
      step()
    count += steps
  return (time.perf_counter() - begin) / count * 1e3


def _rows(names, size):
  norms = {cells.NO_CLIP: None, cells.INSIDE: 1e3, cells.BEYOND: 1.0}
  found = {}
  for name in names:
    session, op = clipping_benchmark.sparse_step(norms[name], size)
    step = session.make_callable(op)
    step()
    found[name] = functools.partial(_milliseconds, step, _ROUND_SECS)
  return found


def _variables(names, size):
  forms.make_devices(2)
  return {name: functools.partial(_build_secs, name, size) for name in names}


def _build_secs(name, size):
  gc.collect()
  with tf.Graph().as_default():
    begin = time.perf_counter()
    forms.build(name, forms.small_layers(size))
    return time.perf_counter() - begin


def _towers(names, size):
  forms.make_devices(size)
  plural = 's' * (size > 1)
  return {name: functools.partial(_operations, f'{name}, {size} device{plural}')
          for name in names}


def _operations(name):
  with tf.Graph().as_default() as graph:
    forms.build(name, forms.small_layers(_TOWER_VARIABLES))
    return len(graph.get_operations())
