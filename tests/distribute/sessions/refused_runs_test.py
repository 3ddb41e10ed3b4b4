# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Steps that wait for ever, and those that only wait, with servers over gRPC.

No test can choose the id of a step. A refused step is one whose part of the
worker never runs while another part waits: here the worker's part is left out.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from concurrent import futures

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import hooks
from tfplugin.distribute.sessions import refused_runs
from tfplugin.testing import clusters

tf1 = tf.compat.v1

_LIMIT_SECS = 0.1
# Of a test, for what comes soon on a machine with nothing else to do.
_PATIENCE_SECS = 60.0


@pytest.fixture(name='target', scope='module')
def fixture_target():
  return clusters.in_process_cluster(num_workers=1).target('worker', 0)


@pytest.fixture(name='looks_often', autouse=True)
def fixture_looks_often(monkeypatch):
  monkeypatch.setattr(refused_runs, '_LOOK_SECS', 0.05)
  yield
  for thread in _watches():
    thread.join(_PATIENCE_SECS)
  assert not _watches()


@pytest.fixture(name='waiting')
def fixture_waiting(request):
  """A graph with a step that waits on the ps until `filled` is run."""
  container = request.node.name.replace('_', '.')  # As TensorFlow spells them.
  with tf.Graph().as_default() as graph, graph.container(container):
    with tf1.device('/job:ps'):
      step = tf1.train.get_or_create_global_step()
      fifo = tf.queue.FIFOQueue(10, tf.int64, [[]], shared_name='fifo')
      filled = fifo.enqueue(tf.constant(7, tf.int64))
      waits = fifo.dequeue()
    yield waits, filled, step


class _Sessions(tf1.train.SessionRunHook):
  """Counts sessions, and lets the second one go on, however slowly."""

  def __init__(self, filled, hook):
    self.filled, self.hook, self.count, self.limit_secs = filled, hook, 0, None
    self.last = None

  def after_create_session(self, session, coord):
    del coord
    self.count, self.last = self.count + 1, session
    if self.count == 2:
      runs = self.hook._runs
      self.limit_secs, runs._limit_secs = runs._limit_secs, 1e6
      self.hook.accept()
      session.run(self.filled)


def _training(target, *its_hooks):
  return tf1.train.MonitoredTrainingSession(
      target, hooks=its_hooks, save_checkpoint_steps=None,
      save_checkpoint_secs=None, save_summaries_steps=None,
      save_summaries_secs=None, log_step_count_steps=None)


class _Refused(hooks.RefusedStepHook):
  """As if the worker's part of the runs were never begun."""

  def begin(self):
    super().begin()
    self._written_mark = self._runs.mark
    self._runs.mark = tf.constant(0.0, tf.float64)

  def accept(self):
    self._runs.mark = self._written_mark


class _ReadsAfterSteps(tf1.train.SessionRunHook):
  """Runs the session by itself, as the hook that saves does."""

  def __init__(self, fetch):
    self.fetch, self.found = fetch, []

  def after_run(self, run_context, run_values):
    self.found.append(run_context.session.run(self.fetch))


def _watches():
  return [thread for thread in threading.enumerate()
          if thread.name == refused_runs.WATCH]


def test_a_refused_run_is_ended_and_the_training_goes_on(
    target, waiting, caplog):
  waits, filled, step = waiting
  hook = _Refused(_LIMIT_SECS)
  sessions = _Sessions(filled, hook)
  with _training(target, sessions, hook) as session:
    assert session.run(waits) == 7  # Would wait for ever.
    assert sessions.count == 2
    assert session.run(step) == 0
  assert sessions.count == 2
  assert 'The session is made anew.' in caplog.text
  # It waits longer before the next one.
  assert sessions.limit_secs == 2 * _LIMIT_SECS


def test_a_refused_run_of_another_hook_is_ended_too(target, waiting):
  waits, filled, step = waiting
  hook, reads = _Refused(_LIMIT_SECS), _ReadsAfterSteps(waits)
  sessions = _Sessions(filled, hook)
  with _training(target, sessions, reads, hook) as session:

    def make_step():
      with step.graph.as_default():
        return session.run(step)

    # Not the thread that has made the session: the hook follows the steps.
    with futures.ThreadPoolExecutor() as pool:
      found = pool.submit(make_step)
      try:
        assert found.result(_PATIENCE_SECS) == 0
      finally:  # Also a run that waits without end.
        with tf1.Session(target, graph=step.graph) as other:
          other.run(filled)
  assert reads.found == [7]
  assert sessions.count == 2


def test_a_run_that_fails_is_no_refused_run(target, waiting):
  """Its mark is known, and the watch does not wait for it any more."""
  _, _, step = waiting
  hook = hooks.RefusedStepHook()

  class Fails(tf1.train.SessionRunHook):

    def begin(self):
      with tf1.device('/job:worker'), (
          # Else the run may fail before it writes the mark.
          tf1.control_dependencies([hook._runs.mark])):
        self.fails = tf.debugging.Assert(False, ['no'])

    def after_run(self, run_context, run_values):
      with pytest.raises(tf.errors.InvalidArgumentError):
        run_context.session.run(self.fails)
      assert hook._runs._asked is None
      # In a thread of its own, as a run of this one would write the mark.
      with futures.ThreadPoolExecutor() as pool:
        assert hook._runs._last == pool.submit(
            hook._runs._written, run_context.session).result(_PATIENCE_SECS)

  with _training(target, hook, Fails()) as session:
    session.run(step)


def test_a_run_that_has_begun_is_waited_for(target, waiting, monkeypatch):
  """However long it lasts beyond the limit."""
  waits, filled, step = waiting
  hook = hooks.RefusedStepHook(1e6)
  looks = queue.Queue()
  written = refused_runs.RefusedRuns._written

  def look(self, session):
    looks.put(written(self, session))
    return looks.queue[-1]

  monkeypatch.setattr(refused_runs.RefusedRuns, '_written', look)
  sessions = _Sessions(filled, hook)
  with _training(target, sessions, hook) as session:
    session.run(step)
    last = hook._runs._last
    with futures.ThreadPoolExecutor() as pool:
      found = pool.submit(session.run, waits)
      limit = time.monotonic() + _PATIENCE_SECS
      while written(hook._runs, sessions.last) == last:
        assert time.monotonic() < limit
      hook._runs._limit_secs = hook._runs._longest_secs = 1e-9
      looks.queue.clear()
      for _ in range(5):
        assert looks.get(timeout=_PATIENCE_SECS) != last
      assert not found.done()
      with tf1.Session(target, graph=step.graph) as other:
        other.run(filled)
      assert found.result(_PATIENCE_SECS) == 7
  assert sessions.count == 1


def test_the_mark_is_the_workers_own(target, waiting):
  """It would come from the ps although the worker's part has not begun."""
  del waiting
  with tf1.device('/job:ps'):
    runs = refused_runs.RefusedRuns()
  metadata = tf1.RunMetadata()
  with tf1.Session(target) as session:
    session.run(runs.mark, options=tf1.RunOptions(
        output_partition_graphs=True), run_metadata=metadata)
  nodes = [node for graph in metadata.partition_graphs for node in graph.node]
  assert {node.op for node in nodes} >= {'AssignVariableOp', 'Timestamp'}
  assert all('/job:worker' in node.device for node in nodes)


def test_a_mark_of_an_earlier_session_is_none(target, waiting):
  """Its resource lives as long as the server does."""
  _, _, step = waiting
  for _ in range(2):
    hook = hooks.RefusedStepHook()
    with _training(target, hook) as session:
      before = hook._runs._last
      session.run(step)
      assert hook._runs._last > before


def test_the_longest_run_so_far_is_no_sign(target, waiting):
  """Nor is the first one, for which the graph is cut."""
  _, _, step = waiting
  waits_not = tf.constant(1)
  hook, limits = hooks.RefusedStepHook(20.0), []

  class Limits(tf1.train.SessionRunHook):
    """Feeds each step with the limit that applies to it."""

    def before_run(self, run_context):
      return tf1.train.SessionRunArgs(None, {step: self})

    def __array__(self, *args, **kwargs):
      limits.append(hook._runs._limit())
      return np.array(0, np.int64)

  with _training(target, Limits(), hook) as session:
    session.run(step)
    assert hook._runs._longest_secs > 0.0
    for longest in (0.01, 10.0, 11.0):
      hook._runs._longest_secs = longest
      session.run(step)
    hook._runs._longest_secs = 0.01
    session.run(waits_not)
  assert limits == [200.0, 20.0, 20.0, 22.0, 200.0]


def test_there_is_one_watch_while_the_training_lasts(target, waiting):
  """And none afterwards, which the fixture sees."""
  _, _, step = waiting
  with _training(target, hooks.RefusedStepHook()) as session:
    session.run(step)
    assert len(_watches()) == 1


@pytest.mark.parametrize('looks', [1, 2])
def test_one_look_is_not_enough(target, waiting, looks):
  """All of this process may have been stopped between a step and its mark."""
  del waiting

  class Over:
    """Is not yet, for so many looks."""

    left = looks

    def wait(self, secs):
      del secs
      self.left -= 1
      return self.left < 0

  runs = refused_runs.RefusedRuns(limit_secs=1e-9)
  coord = tf.train.Coordinator()
  with tf1.Session(target) as session:
    runs._last = runs._written(session)
    runs._asked = (time.monotonic(), False)
    runs._watch(session, coord, Over())
  assert coord.should_stop() == (looks == 2)


def test_it_adds_nothing_that_is_initialised_or_saved(waiting):
  _, _, step = waiting
  before = set(step.graph.collections)
  refused_runs.RefusedRuns()
  assert set(step.graph.collections) == before


def test_the_connections_to_one_port_are_ended():
  """A refused run is cancelled already: nothing else ends it."""
  with contextlib.ExitStack() as stack:

    def connected():
      listening = stack.enter_context(socket.create_server(('localhost', 0)))
      port = listening.getsockname()[1]
      near = stack.enter_context(socket.create_connection(('localhost', port)))
      near.settimeout(10)
      return listening, port, near, stack.enter_context(listening.accept()[0])

    listening, port, ended, far = connected()
    _, _, kept, others = connected()
    refused_runs._end_connections(port)
    assert ended.recv(1) == b''
    assert far.recv(1) == b''
    others.sendall(b'x')
    assert kept.recv(1) == b'x'
    # The server goes on.
    stack.enter_context(socket.create_connection(('localhost', port)))
    listening.settimeout(10)
    stack.enter_context(listening.accept()[0])


def test_whoever_lost_a_connection_connects_again(target, waiting):
  _, _, step = waiting
  with tf1.Session(target) as session:
    session.run(step.initializer)
    refused_runs._end_connections(refused_runs._port(session))
    assert session.run(step + tf.constant(1, tf.int64)) == 1


def test_a_run_lasts_from_the_call_to_the_answer():
  def run(session, fetches):
    del session
    time.sleep(0.01)
    return fetches

  with tf.Graph().as_default(), tf1.Session() as session:
    runs = refused_runs.RefusedRuns()
    runs._session, start = session, time.monotonic()
    runs.follow_thread()
    assert runs.watched(run, session, 1) == 1
  assert 0.01 <= runs._longest_secs <= time.monotonic() - start
