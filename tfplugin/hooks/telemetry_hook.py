# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hook that reads a training's numbers at intervals, for sinks that write them.

The numbers are the step of the graph, and the counters and figures of a
wrapper. `EventsHook`, `TensorBoardHook` and the status of `tfplugin-train` are
this hook with one sink each. `train_and_evaluate` gives two sinks to one hook,
which reads the counters once for both.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
import time
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import graph_order
from tfplugin.distribute import per_graph
from tfplugin.distribute import placement
from tfplugin.distribute import time_limit
from tfplugin.ops import elastic

tf1 = tf.compat.v1

STEP = 'step'

# The distance needs a read of the whole centre. The next read waits 100 times
# as long as the last one took, so that reads take 1 % of the time.
_TIMES_AS_LONG = 100.0


def global_step_for(hook: tf1.train.SessionRunHook) -> tf.Variable:
  """Returns the default graph's step; without one, the error names `hook`."""
  step = tf1.train.get_global_step()
  if step is None:
    raise RuntimeError(f'{type(hook).__name__} needs a global step: call '
                       '`tf.compat.v1.train.get_or_create_global_step()`.')
  return step


def check_model_dir(config: tf.estimator.RunConfig) -> None:
  """Raises ValueError unless `config` names a model_dir."""
  if not config.model_dir:
    raise ValueError('`config` must name a model_dir, for the event files. '
                     f'Received: model_dir={config.model_dir!r}. Pass '
                     '`estimator.config`, which always does.')


def step_and_counters() -> dict[str, tf.Tensor]:
  """Returns the default graph's step, and its counters by their names."""
  return {STEP: tf1.train.get_global_step(), **counters()}


def read(session: tf1.Session,
         tensors: Mapping[str, tf.Tensor]) -> dict[str, int]:
  """Returns the values of the tensors that `step_and_counters` returned."""
  try:
    values = session.run(dict(tensors))
  except tf.errors.FailedPreconditionError:
    # A counter that is initialised later must not end the training.
    values = {STEP: session.run(tensors[STEP])}
  return {name: int(value) for name, value in values.items()}


def counters() -> dict[str, tf.Tensor]:
  """Returns the counters of the graph, by the names of event details."""
  counts = per_graph.of(tf1.get_default_graph()).counts
  parts = collections.defaultdict(list)
  for variable in [*tf1.local_variables(), *tf1.global_variables()]:
    count = counts.get(variable.op.name)
    if count is not None:
      parts[count.name].append(variable.read_value() // count.every)
  return {name: tf.add_n(values) for name, values in parts.items()}


class Distance:
  """The distance of this worker's copies from the centre."""

  def __init__(self):
    """Adds the ops that read it, if the graph averages variables."""
    pairs = per_graph.of(
        tf1.get_default_graph()).figure(per_graph.DISTANCE)
    self._value: tf.Tensor | None = None
    self._due = float('-inf')
    self._is_prepared = False
    if pairs:
      # All copies of a worker are on this device; the default is the chief.
      with placement.device_override(pairs[0][0].device):
        self._value = elastic.distance([copy.read_value() for copy, _ in pairs],
                                       [c.read_value() for _, c in pairs])

  def read(self, session: tf1.Session) -> dict[str, float]:
    """Returns `distance`; {} if there is none, or the next read is not due."""
    start = time.monotonic()
    if self._value is None or start < self._due:
      return {}
    try:
      value = float(session.run(self._value))
    except tf.errors.FailedPreconditionError:
      # A variable that is initialised later must not end the training.
      return {}
    now = time.monotonic()
    if self._is_prepared:  # The first run includes the session's planning.
      self._due = now + _TIMES_AS_LONG * (now - start)
    self._is_prepared = True
    # JSON has no NaN and no infinity.
    return {'distance': value} if math.isfinite(value) else {}


class Staleness:
  """The tensors with the staleness of the current graph's steps.

  They are fetched only with steps that compute them. A program may also run
  other steps, e.g. of another optimizer, with the same hooks.
  """

  def __init__(self):
    """Finds the tensors, except those inside a branch."""
    self._graph = tf1.get_default_graph()
    self._tensors = [
        tensor for tensor, in per_graph.of(self._graph).figure(
            per_graph.STALENESS)
        if _tf_internals.is_usable_here(tensor)]
    self._of_fetches = {}

  def of_step(self, fetches: Any) -> list[tf.Tensor]:
    """Returns the tensors that a run with these fetches computes anyway."""
    if not self._tensors:
      return []
    asked = tf.nest.flatten(fetches, expand_composites=True)
    # By identity: tensors have no plain equality.
    key = tuple(one if isinstance(one, str) else id(one) for one in asked)
    if key not in self._of_fetches:
      run = graph_order.upstream(map(self._graph.as_graph_element, asked))
      self._of_fetches[key] = [t for t in self._tensors if t.op in run]
    return self._of_fetches[key]


def most_stale(values: Sequence[int] | None) -> dict[str, int]:
  """Returns `staleness`, the largest value; {} without values."""
  return {'staleness': max(map(int, values))} if values else {}


@dataclasses.dataclass(frozen=True)
class Report:
  """The numbers of a training at one moment.

  `num_steps` are the steps that the task has made with the hook.
  `steps_per_sec` is the task's speed since the report before; None in the
  first. `tensors` has the step and the counters of the graph.
  """

  session: tf1.Session
  num_steps: int
  steps_per_sec: float | None
  tensors: Mapping[str, tf.Tensor]

  @functools.cached_property
  def values(self) -> dict[str, int]:
    """The values of `tensors`, which the first use reads."""
    return read(self.session, self.tensors)


class Sink:
  """Writer of reports; each method does nothing in this base class.

  `fetches` is called before steps with a report, or before each step if
  `fetches_each_step`.
  """

  fetches_each_step = False

  def begin(self) -> None:
    """Prepares to write, when the graph is complete."""

  def begin_session(self, session: tf1.Session) -> None:
    """Takes a new session: the first one, or one after a failure."""

  def fetches(self, asked: Any, is_due: bool) -> Any:
    """Returns the tensors to fetch with a step, or None.

    `asked` has the fetches of the step. `is_due` says whether a report follows.
    """

  def end_step(self, fetched: Any) -> None:
    """Takes the fetched values of a step, if there were fetches."""

  def write(self, report: Report, fetched: Any) -> None:
    """Writes a report, with the fetched values of the step or None."""

  def end(self, report: Report) -> None:
    """Writes the last report of a training."""


class TelemetryHook(tf1.train.SessionRunHook):
  """Reports a task's training to sinks, once in `every_secs` and at the end.

  The first step has a report, too. In other steps the hook only reads the
  clock.
  """

  def __init__(self, *sinks: Sink, every_secs: float = 5.0):
    """Stores the sinks."""
    self._every_secs = time_limit.check('every_secs', every_secs)
    self._sinks = sinks
    self._sinks_of_each_step = [s for s in sinks if s.fetches_each_step]
    self._tensors = {}
    self._num_steps = 0
    self._reported: tuple[float, int] | None = None
    self._due = float('-inf')
    self._is_due = False

  def begin(self) -> None:
    """Finds the step and the counters of the graph."""
    global_step_for(self)
    self._tensors = step_and_counters()
    for sink in self._sinks:
      sink.begin()

  def after_create_session(self, session: tf1.Session, coord) -> None:
    """Reports the session to the sinks."""
    del coord
    for sink in self._sinks:
      sink.begin_session(session)

  def before_run(self, run_context) -> tf1.train.SessionRunArgs | None:
    """Fetches the tensors of the sinks."""
    # Decided once: a report that becomes due during a step has no fetches.
    self._is_due = time.monotonic() >= self._due
    sinks = self._sinks if self._is_due else self._sinks_of_each_step
    if not sinks:
      return None
    asked = run_context.original_args.fetches
    fetches = {sink: sink.fetches(asked, self._is_due) for sink in sinks}
    fetches = {sink: wanted for sink, wanted in fetches.items()
               if wanted is not None}
    return tf1.train.SessionRunArgs(fetches) if fetches else None

  def after_run(self, run_context, run_values) -> None:
    """Reports, if a report was due when the step began."""
    self._num_steps += 1
    fetched = run_values.results
    if fetched:
      for sink, values in fetched.items():
        sink.end_step(values)
    if self._is_due:
      fetched = fetched or {}
      now = time.monotonic()
      self._due = now + self._every_secs
      report = self._report(run_context.session, now)
      for sink in self._sinks:
        sink.write(report, fetched.get(sink))

  def end(self, session: tf1.Session) -> None:
    """Writes the last report."""
    report = self._report(session, time.monotonic())
    for sink in self._sinks:
      sink.end(report)

  def _report(self, session: tf1.Session, now: float) -> Report:
    rate = None
    if self._reported:
      then, num_steps = self._reported
      rate = (self._num_steps - num_steps) / max(now - then, 1e-3)
    self._reported = (now, self._num_steps)
    return Report(session, self._num_steps, rate, self._tensors)
