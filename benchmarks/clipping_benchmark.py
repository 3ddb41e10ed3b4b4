# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Time that clipping adds to an SGD step, in passes over the table.

usage: python -m benchmarks.clipping_benchmark [v1|v2]

Dense: a step on [500000, 64] float32 with and without clipping along dim 1; a
pass is the time in which numpy multiplies such an array in place. Sparse: 4,096
ids with repeats, tables of 1e5, 1e6 and 1e7 rows. Repeats alternate between the
variants and the least time of each counts, so that other load on the machine
falls on all of them. `benchmarks/contrib_reference.py` times the originals.
Prints the figures as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import numpy as np
import tensorflow as tf

from benchmarks import rows
from tfplugin.optimizers import variable_clipping

tf1 = tf.compat.v1

_NUM_IDS = 4096
_WIDTH = 64
_RATE = -0.001  # Negative: rows grow, so that the bound is reached again.


def _session():
  return tf1.Session(config=tf1.ConfigProto(
      intra_op_parallelism_threads=2, inter_op_parallelism_threads=2))


def _optimizer(table, max_norm):
  optimizer = tf1.train.GradientDescentOptimizer(_RATE)
  if max_norm is None:
    return optimizer
  return variable_clipping.VariableClippingOptimizer(
      optimizer, [(table, [1])], max_norm)


def dense_step(max_norm, fraction_beyond):
  """Returns a step of SGD on a table, clipped or not (None), and its session.

  Args:
    max_norm: The bound.
    fraction_beyond: Of the rows, which the gradient pushes out of the ball.
  """
  with tf.Graph().as_default():
    value = tf1.placeholder(tf.float32, [500000, _WIDTH])
    table, push = (
        tf1.get_variable(name, value.shape,
                         initializer=tf1.zeros_initializer())
        for name in ('table', 'push'))
    step = _optimizer(table, max_norm).apply_gradients(
        [(push.read_value(), table)])
    pushed = np.full(value.shape, 0.01, np.float32)
    pushed[:int(len(pushed) * fraction_beyond)] = 1.0
    session = _session()
    for variable in (table, push):
      session.run(tf1.assign(variable, value).op, {value: pushed})
    return session, step


def sparse_step(max_norm, num_rows):
  """Returns a step of SGD on 4,096 rows of a table, clipped or not (None).

  Args:
    max_norm: The bound.
    num_rows: Of the table.

  Returns:
    The session and the step.
  """
  with tf.Graph().as_default():
    table = tf1.get_variable('table', [num_rows, _WIDTH],
                             initializer=tf1.ones_initializer())
    ids = np.random.RandomState(0).randint(0, 3000, _NUM_IDS)
    gradient = tf.IndexedSlices(
        tf.ones([_NUM_IDS, _WIDTH]), tf.constant(ids * (num_rows // 3000)))
    step = _optimizer(table, max_norm).apply_gradients([(gradient, table)])
    session = _session()
    session.run(tf1.global_variables_initializer())
    return session, step


def least_times(steps, num_rounds, steps_per_round):
  """Returns the least time of each step in ms; the rounds alternate."""
  best = [float('inf')] * len(steps)
  for _ in range(num_rounds):
    for index, step in enumerate(steps):
      start = time.perf_counter()
      for _ in range(steps_per_round):
        step()
      elapsed = (time.perf_counter() - start) / steps_per_round
      best[index] = min(best[index], elapsed * 1e3)
  return best


def _callables(steps):
  return [session.make_callable(step) for session, step in steps]


def _numpy_pass():
  array = np.ones([500000, _WIDTH], np.float32)
  return lambda: np.multiply(array, np.float32(1.0001), out=array)


def measure():
  """Returns milliseconds of a step by what it is, and of a pass."""
  found = {}
  for fraction in (0.0, 0.01, 0.1, 1.0):
    one_pass, plain, clipped = least_times(
        [_numpy_pass(), *_callables([
            dense_step(max_norm, fraction) for max_norm in (None, 1.0)])],
        20, 1)
    found |= {f'dense {fraction:.0%}/pass_ms': one_pass,
              f'dense {fraction:.0%}/plain_ms': plain,
              f'dense {fraction:.0%}/clipped_ms': clipped}
  for num_rows in rows.NUM_ROWS:
    plain, inside, beyond = least_times(
        _callables([sparse_step(max_norm, num_rows)
                    for max_norm in (None, 1e3, 1.0)]), 20, 20)
    for kind, clipped in (('none', inside), ('all', beyond)):
      found |= {f'sparse {num_rows} {kind}/plain_ms': plain,
                f'sparse {num_rows} {kind}/clipped_ms': clipped}
  return found


def main(argv):
  """Measures in one of the two behaviours."""
  if argv[1:] == ['v1']:
    tf1.disable_v2_behavior()
  print(json.dumps(measure()))


if __name__ == '__main__':
  main(sys.argv)
