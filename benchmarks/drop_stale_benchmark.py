# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Time that dropping stale gradients adds to a step of Adam.

usage: python -m benchmarks.drop_stale_benchmark [v1|v2]

The same model with the bare optimizer and with the wrapper, 1 and 50 variables;
repeats alternate and the least time of each counts. Prints the figures as JSON.
"""

from __future__ import annotations

import json
import os
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import tensorflow as tf

from benchmarks import clipping_benchmark
from tfplugin.optimizers import drop_stale_gradient

tf1 = tf.compat.v1


def step(num_variables: int, size: int,
         wrap: bool) -> tuple[tf1.Session, tf.Operation]:
  """Returns a session, and the op that makes a step in it.

  Args:
    num_variables: Kernels of the model, one after the other.
    size: Of each side of a kernel.
    wrap: Whether stale gradients are dropped.
  """
  with tf.Graph().as_default():
    kernels = [
        tf1.get_variable(f'kernel_{i}', [size, size],
                         initializer=tf1.glorot_uniform_initializer())
        for i in range(num_variables)]
    hidden = tf.ones([32, size])
    for kernel in kernels:
      hidden = tf.tanh(tf.matmul(hidden, kernel))
    optimizer = tf1.train.AdamOptimizer(1e-3)
    if wrap:
      optimizer = drop_stale_gradient.DropStaleGradientOptimizer(optimizer, 10)
    train_op = optimizer.minimize(
        tf.reduce_sum(hidden),
        global_step=tf1.train.get_or_create_global_step())
    session = tf1.Session(config=tf1.ConfigProto(
        intra_op_parallelism_threads=2, inter_op_parallelism_threads=2))
    session.run([tf1.global_variables_initializer(),
                 tf1.local_variables_initializer()])
    return session, train_op


def measure():
  """Returns milliseconds of a step, bare and wrapped."""
  found = {}
  for num_variables, size in ((1, 1000), (50, 128), (50, 300)):
    steps = [step(num_variables, size, wrap) for wrap in (False, True)]
    bare, wrapped = clipping_benchmark.least_times(
        [session.make_callable(train_op) for session, train_op in steps],
        40, 10)
    found |= {f'{num_variables} of {size}/bare_ms': bare,
              f'{num_variables} of {size}/wrapped_ms': wrapped}
  return found


def main(argv):
  """Measures in one of the two behaviours."""
  if argv[1:] == ['v1']:
    tf1.disable_v2_behavior()
  print(json.dumps(measure()))


if __name__ == '__main__':
  main(sys.argv)
