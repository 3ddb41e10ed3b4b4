# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values that a program writes itself before the first step, e.g. pretrained.

A Scaffold's `init_fn` and hooks write a variable before the session's first
step. An assignment reaches the chief's copy, a Saver the centre. Both get the
value: training starts from what was written.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import elastic_start
from tfplugin.distribute.elastic.values import set_values
from tfplugin.distribute.variables import worker_variables

tf1 = tf.compat.v1


class FirstValues(tf1.train.SessionRunHook):
  """Hands on, in the chief, what was written between a start and a step.

  A copy that has changed since it was initialised gives its value to the
  centre; else the centre gives its own. Another worker starts from the centre,
  and what its hooks write is its copy's alone.
  """

  def __init__(self, pairs: Sequence[elastic_pairs.Pair], device: str):
    """Adds the ops; to be made when all variables are there.

    Args:
      pairs: The averaged variables.
      device: The worker's.
    """
    # Of a getter, copies have a start of their own.
    self._pairs = [pair for pair in pairs if pair.initializer is None]
    self._is_due = False
    if not self._pairs:
      return
    with tf1.control_dependencies(None), tf1.name_scope('first_values'):
      self._before = worker_variables.create(
          lambda: _prints([pair.local.initializer.inputs[1]
                           for pair in self._pairs]),
          'elastic_average/first_values', device, is_listed=False)
      with placement.only_on(device):
        self._fetches = {
            'before': self._before.read_value(),
            'copy': _prints([c.read_value() for c in self._copies()]),
            'center': _prints([p.center.read_value() for p in self._pairs])}
      self._to_center = [
          _assign([pair.center, *pair.copies[1:]], pair.local, pair)
          for pair in self._pairs]
      self._to_copies = [_assign(pair.copies, pair.center, pair)
                         for pair in self._pairs]

  def variables(self) -> list[tf.Variable]:
    """Returns the variable that it has added, which a session starts."""
    return [self._before] if self._pairs else []

  def after_create_session(self, session: tf1.Session, coord) -> None:
    """Notes that other hooks may write now."""
    del session, coord
    self._is_due = bool(self._pairs)

  def before_run(self, run_context) -> None:
    """Before the first step of a session; see the class."""
    if not self._is_due:
      return
    self._is_due = False
    seen = run_context.session.run(self._fetches)
    copies = iter(seen['copy'])
    todo = []
    for i, pair in enumerate(self._pairs):
      own = [next(copies) for _ in pair.copies]
      if any(not np.array_equal(copy, seen['center'][i]) for copy in own):
        is_written = not np.array_equal(own[0], seen['before'][i])
        todo.append((self._to_center if is_written else self._to_copies)[i])
    run_context.session.run(todo)

  def _copies(self) -> list[tf.Variable]:
    return [copy for pair in self._pairs for copy in pair.copies]


def scaffold_for_centers(own: tf1.train.Scaffold,
                         pairs: Sequence[elastic_pairs.Pair],
                         ) -> tf1.train.Scaffold:
  """Returns a scaffold like `own` whose `init_fn` reaches the centres.

  Args:
    own: The scaffold of a model_fn.
    pairs: The averaged variables.
  """
  if own.init_fn is None:
    return own
  return tf1.train.Scaffold(
      copy_from_scaffold=own,
      init_fn=elastic_start.init_fn_for_centers(own.init_fn, pairs))


def _prints(values: Sequence[tf.Tensor]) -> tf.Tensor:
  return tf.stack([set_values.print_of(value) for value in values])


def _assign(variables: Sequence[tf.Variable], value: tf.Variable,
            pair: elastic_pairs.Pair) -> tf.Operation:
  read = value.read_value()
  views = [pair.local_center] if pair.local_center is not None else []
  return tf.group(*[elastic_pairs.write(variable, 'update', read)
                    for variable in (*variables, *views)])
