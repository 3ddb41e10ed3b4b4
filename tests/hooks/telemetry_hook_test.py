# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sinks get the numbers of a training, which are read once for all of them."""

from __future__ import annotations

import types

import pytest
import tensorflow as tf

from tfplugin.distribute import per_graph
from tfplugin.hooks import telemetry_hook

tf1 = tf.compat.v1


class _Sink(telemetry_hook.Sink):
  """Keeps what it gets, and fetches a tensor with each step."""

  def __init__(self, reads=True):
    self.got = []
    self._reads = reads

  def begin(self):
    self.got.append('begin')
    self._tensor = tf1.train.get_global_step() * 0 + 7

  def begin_session(self, session):
    self.got.append('session')

  def fetches(self, asked, is_due):
    assert is_due
    assert tf.nest.flatten(asked)
    return {'seven': self._tensor}

  def end_step(self, fetched):
    self.got.append(int(fetched['seven']))

  def write(self, report, fetched):
    values = report.values if self._reads else None
    self.got.append((report.num_steps, report.steps_per_sec, values,
                     fetched is not None))

  def end(self, report):
    self.write(report, None)


def _train(hook, steps):
  """Trains a graph with a counter that is twice the step."""
  with tf.Graph().as_default() as graph:
    step = tf1.train.create_global_step()
    counter = tf1.get_variable('a', initializer=0, trainable=False)
    per_graph.of(graph).add_count(counter, per_graph.DROPPED)
    train_op = tf.group(step.assign_add(1), counter.assign_add(2))
    with tf1.train.SingularMonitoredSession(hooks=[hook]) as session:
      for _ in range(steps):
        session.run(train_op)


@pytest.fixture(name='clock')
def fixture_clock(monkeypatch):
  """A clock that moves by half a second whenever it is read."""
  clock = types.SimpleNamespace(now=0.0)

  def monotonic():
    clock.now += 0.5
    return clock.now

  monkeypatch.setattr(telemetry_hook, 'time',
                      types.SimpleNamespace(monotonic=monotonic))
  return clock


def test_a_sink_gets_each_report(behavior, clock):
  sink = _Sink()
  _train(telemetry_hook.TelemetryHook(sink, every_secs=1.2), 5)
  # The clock is read before each step, and after one with a report: the reports
  # come at 1.0 and 3.0, and the end at 4.0.
  assert clock.now == 4.0
  assert sink.got == [
      'begin', 'session',
      7, (1, None, {'step': 1, 'num_dropped': 2}, True),
      7, (4, 1.5, {'step': 4, 'num_dropped': 8}, True),
      (5, 1.0, {'step': 5, 'num_dropped': 10}, False)]


class _StepSink(_Sink):
  """Also fetches between reports."""

  fetches_each_step = True

  def fetches(self, asked, is_due):
    return {'seven': self._tensor}


def test_a_sink_may_fetch_with_each_step(behavior, clock):
  sink, other = _StepSink(), _Sink()
  _train(telemetry_hook.TelemetryHook(sink, other, every_secs=1.2), 5)
  assert sink.got.count(7) == 5
  assert other.got.count(7) == 2
  assert [len(one.got) for one in (sink, other)] == [10, 7]


@pytest.mark.parametrize('reading, num_reads', [
    ((True, True), 3), ((True, False), 3), ((False, False), 0)])
def test_sinks_share_what_is_read(monkeypatch, reading, num_reads):
  reads = []
  read = telemetry_hook.read
  monkeypatch.setattr(telemetry_hook, 'read',
                      lambda *args: reads.append(args) or read(*args))
  sinks = [_Sink(one) for one in reading]
  _train(telemetry_hook.TelemetryHook(*sinks, every_secs=1e-9), 2)
  # Two steps and the end.
  assert len(reads) == num_reads
  if all(reading):
    assert sinks[0].got == sinks[1].got


def test_a_sink_without_methods_is_silent():
  _train(telemetry_hook.TelemetryHook(telemetry_hook.Sink()), 2)


@pytest.mark.parametrize('secs, error', [(0, ValueError), ('1', TypeError)])
def test_a_period_is_positive(secs, error):
  with pytest.raises(error, match='Received: '):
    telemetry_hook.TelemetryHook(every_secs=secs)


def test_a_graph_without_a_step_is_a_clear_error():
  with tf.Graph().as_default(), pytest.raises(
      RuntimeError, match='TelemetryHook needs a global step: call'):
    telemetry_hook.TelemetryHook().begin()
