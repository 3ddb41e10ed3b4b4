# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Step and counters of a graph, read in a separate session run."""

from __future__ import annotations

import collections
from collections.abc import Mapping

import tensorflow as tf

from tfplugin.events import step_counts

tf1 = tf.compat.v1

STEP = 'step'


def fetches() -> dict[str, tf.Tensor]:
  """Returns the default graph's step, and its counters by their names."""
  return {STEP: tf1.train.get_global_step(), **_counters()}


def read(session: tf1.Session,
         tensors: Mapping[str, tf.Tensor]) -> dict[str, int]:
  """Returns the values of the tensors that `fetches` has returned."""
  try:
    values = session.run(dict(tensors))
  except tf.errors.FailedPreconditionError:
    # A counter that is initialised later must not end the training.
    values = {STEP: session.run(tensors[STEP])}
  return {name: int(value) for name, value in values.items()}


def _counters() -> dict[str, tf.Tensor]:
  """Returns the counters of the graph, by the names of event details."""
  counts = step_counts.of(tf1.get_default_graph())
  parts = collections.defaultdict(list)
  for variable in [*tf1.local_variables(), *tf1.global_variables()]:
    count = counts.get(variable.op.name)
    if count is not None:
      parts[count.name].append(variable.read_value() // count.every)
  return {name: tf.add_n(values) for name, values in parts.items()}
