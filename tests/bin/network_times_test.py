# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The equations of the network: by hand, at their limits, beside a simulation.

What they foresee of measured cells is in `network_page_test`.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.bin import network_times
from tfplugin.ops import wire_types

# A message of the model takes a second.
_CLUSTER = network_times.Cluster(
    model_bytes=100.0, step_secs=0.5, link_bytes=100.0, num_worker=1)


def _with(**changes):
  return dataclasses.replace(_CLUSTER, **changes)


def test_one_worker_pulls_and_then_pushes():
  assert network_times.cycle_secs(_CLUSTER, 0.0) == 2.0
  assert network_times.cycle_secs(_CLUSTER, 9.0, 'float16') == 9.0 + 1.0
  assert network_times.cycle_secs(
      _with(latency_secs=0.25), 0.0) == 2.0 + 4 * 0.25
  assert network_times.server_secs(_CLUSTER) == 2.5
  assert network_times.elastic_secs(_CLUSTER, 10) == 5.0 + 2.0


def test_what_is_pulled_is_pushed_beside_the_rest():
  """Of elastic averaging; gradients need all variables."""
  parts = _with(largest_part=0.25)
  assert network_times.cycle_secs(parts, 0.0) == 1.25
  assert network_times.elastic_secs(parts, 10) == 5.0 + 1.25
  assert network_times.server_secs(parts) == 2.5


def test_two_messages_share_the_link():
  """Without pauses the other one's is on each link for half of the time."""
  two = _with(num_worker=2)
  assert network_times.cycle_secs(two, 0.0) == 2 * (1 + 0.5)
  # With a pause of 2 s: on each link for 1 s of 4.
  assert network_times.cycle_secs(two, 2.0) == 2.0 + 2 * (1 + 0.25)


def test_a_variable_that_is_more_than_the_others_brings_workers_apart():
  """They fill the link, 2 s, or are as one alone; half by chance."""
  more = _with(num_worker=2, largest_part=0.6)
  assert network_times.cycle_secs(more, 0.0) == 2.0
  assert network_times.cycle_secs(more, 3.4) == pytest.approx(3.4 + 1.6)
  assert network_times.cycle_secs(
      dataclasses.replace(more, latency_secs=0.25), 3.4) == pytest.approx(6.0)
  # Pulls and pushes of 1 s within 1.5 s: on each link for 2 / 3.
  np.testing.assert_allclose(
      network_times.cycle_secs(_with(num_worker=2, largest_part=0.5), 0.0),
      1.5 * (1 + 2 / 3), rtol=1e-12)


def test_parts_are_pushed_while_the_rest_is_pulled():
  """With period 1 and with overlap; the last one takes time of its own."""
  assert network_times.cycle_secs(_CLUSTER, 3.0, in_parts=True) == 3.0 + 1.125
  # Of variables that are smaller than an eighth, the largest.
  assert network_times.cycle_secs(
      _with(largest_part=0.0625), 3.0, in_parts=True) == 3.0 + 1.0625
  # Two workers fill the link, but for their pauses.
  assert [network_times.cycle_secs(_with(num_worker=2), pause, in_parts=True)
          for pause in (0.0, 1.0)] == [2.0, 1.0 + 1.125]
  assert [network_times.elastic_secs(_CLUSTER, *how) for how in (
      (1,), (2,), (1, True), (2, True))] == [
          0.5 + 1.125, 1.0 + 2.0, 1.125, 1.125]


def test_latency_is_a_pause_for_the_link():
  """On each link for 1 s of 2 + 4 / 2: r(2) = 1 + 1 / 4."""
  np.testing.assert_allclose(
      network_times.cycle_secs(_with(num_worker=2, latency_secs=0.5), 0.0),
      2 * (1 + 0.25) + 4 * 0.5, rtol=1e-12)


def test_three_workers_by_hand():
  """r(2) = 3 / 2, q(2) = 2 * (3 / 2) / 3 = 1, r(3) = 2."""
  np.testing.assert_allclose(
      network_times.cycle_secs(_with(num_worker=3), 0.0), 4.0, rtol=1e-12)


@pytest.mark.parametrize('workers, pause', [(2, 0.5), (3, 2.0), (5, 4.0)])
def test_simulated_links(workers, pause):
  """Messages of one length, and pauses that vary: the mean is exact."""
  np.testing.assert_allclose(
      network_times.cycle_secs(_with(num_worker=workers), pause),
      _simulated_secs(workers, [1.0], lambda random: random.exponential(pause)),
      rtol=0.01)


@pytest.mark.parametrize('parts, rtol', [
    ([0.566, 0.434], 1 / 8), ([0.6, 0.2, 0.2], 1 / 8), ([0.8, 0.2], 1 / 8),
    ([0.5, 0.5], 1 / 3), ([0.2] * 5, 1 / 3)], ids=str)
@pytest.mark.parametrize('workers', [2, 4, 8])
@pytest.mark.parametrize('pause', [0.05, 0.5, 2.0, 8.0])
def test_simulated_links_of_elastic_averaging(workers, pause, parts, rtol):
  """Largest first, of pauses and shares that are nearly alike."""
  np.testing.assert_allclose(
      network_times.cycle_secs(
          _with(num_worker=workers, largest_part=max(parts)), pause),
      _simulated_secs(workers, parts,
                      lambda random: pause * random.uniform(0.95, 1.05), 0.1,
                      1_000),
      rtol=rtol)


@pytest.mark.parametrize('workers', [2, 4, 8])
@pytest.mark.parametrize('pause', [0.05, 0.5, 2.0, 8.0])
def test_simulated_links_of_parts(workers, pause):
  """Between workers that never meet and such that meet each time."""
  apart = network_times.cycle_secs(
      _with(num_worker=workers), pause, in_parts=True)
  simulated = _simulated_secs(
      workers, [1 / 8] * 8, lambda random: pause * random.uniform(0.95, 1.05),
      0.1, 1_000)
  # Pauses that vary, and 1,000 cycles: a mean within a hundredth.
  assert 0.99 * apart < simulated < 1.01 * (pause + workers + 1 / 8)
  # As docs/speed.md says, which no formula does.
  assert simulated < 1.3 * apart


class _Simulated:
  """A worker: pauses, pulls its variables, pushes each that it has pulled."""

  def __init__(self, parts, pause, share):
    self._parts, self._pause = sorted(parts, reverse=True), pause
    self._share = share
    self.begin()

  def begin(self):
    # What is left of each stage of the first thing in it.
    self.pause = self._pause()
    self.pulls, self.pushes = list(self._parts), []
    self.count, self.share = 0, self._share()

  def stages(self):
    """The queues that something is on, by the link; 0: none."""
    if self.pause:
      return {0: [self.pause]}
    return {link: queue for link, queue in ((1, self.pulls), (2, self.pushes))
            if queue}

  def go_on(self, secs, rates):
    """Returns whether a cycle has ended."""
    if self.pause:
      self.pause = max(0.0, self.pause - secs)
      return False
    for link, queue in self.stages().items():
      queue[0] -= secs * rates[link]
    if self.pushes and self.pushes[0] < 1e-9:
      self.pushes.pop(0)
      self.count += 1
    if self.pulls and self.pulls[0] < 1e-9:
      self.pulls.pop(0)
      self.pushes.append(self._parts[-len(self.pulls) - 1])
    return self.count == len(self._parts)


def _simulated_secs(workers, parts, pause, unlike=0.0, cycles=20_000):
  """The mean time of a cycle, of shares that are up to so much `unlike`."""
  random = np.random.RandomState(0)
  all_workers = [
      _Simulated(parts, lambda: pause(random),
                 lambda: random.uniform(1 - unlike, 1 + unlike))
      for _ in range(workers)]
  now, done = 0.0, 0
  while done < cycles:
    shares = [sum(worker.share for worker in all_workers
                  if link in worker.stages()) for link in (1, 2)]
    rates = [[1.0, *(worker.share / max(share, 1e-9) for share in shares)]
             for worker in all_workers]
    secs = min(queue[0] / rate[link]
               for worker, rate in zip(all_workers, rates)
               for link, queue in worker.stages().items())
    now += secs
    for worker, rate in zip(all_workers, rates):
      if worker.go_on(secs, rate):
        done += 1
        worker.begin()
  return now * workers / done


def test_many_workers_share_the_link():
  def rate(cluster):
    return 400 / network_times.cycle_secs(cluster, 0.0)

  many = _with(num_worker=400)
  assert 0.99 < rate(many) <= 1.0
  # Two servers carry twice as much; a worker's own link is the limit of few.
  assert 1.98 < rate(dataclasses.replace(many, num_ps=2)) <= 2.0
  assert network_times.cycle_secs(_with(num_ps=8), 0.0) == 2.0
  # By hand: the fullest of two servers sends 0.75 of a model, of 1 s, to each.
  fullest = _with(num_worker=8, num_ps=2, largest_part=0.75)
  assert network_times.cycle_secs(fullest, 0.0) == 8 * 0.75
  assert network_times.cycle_secs(fullest, 0.0, in_parts=True) == 8 * 0.75
  longer = dataclasses.replace(fullest, step_secs=1.0)
  assert network_times.server_secs(longer, synchronous=True) == 1 + 2 * 6
  # An equal part of two servers is more than the largest variable.
  assert network_times.cycle_secs(
      dataclasses.replace(fullest, largest_part=0.25), 0.0,
      in_parts=True) == 8 * 0.5
  # Of elastic averaging as many: by chance W + g.
  np.testing.assert_allclose(network_times.cycle_secs(
      _with(num_worker=400, largest_part=0.1), 0.0), 400.1, rtol=1e-12)


def test_what_the_hosts_take():
  """Half of it is beside the messages, and nothing beside the steps."""
  busy = _with(host_secs=1.0, call_secs=0.1)
  assert network_times.elastic_secs(busy, 10) == pytest.approx(6 + 2 + 0.5)
  assert network_times.elastic_secs(busy, 10, overlap=True) == 6.0
  assert network_times.elastic_secs(busy, 1, overlap=True) == 1.125 + 1.0
  assert network_times.server_secs(busy) == 2.5
  # No link is the limit.
  fast = dataclasses.replace(busy, link_bytes=1e9)
  assert network_times.elastic_secs(fast, 10) == pytest.approx(6 + 1)
  assert network_times.server_secs(fast) == 1.5


def test_what_the_hosts_take_is_beside_the_messages_of_other_workers():
  """Four messages fill the link; one worker alone waits for its own."""
  full = _with(num_worker=4, largest_part=0.75, host_secs=1.0)
  assert network_times.elastic_secs(full, 2) == 4.0
  assert network_times.elastic_secs(full, 1) == 4.0
  assert network_times.elastic_secs(full, 1, overlap=True) == 4.0
  assert network_times.hidden_period(full) == 6  # (4 - 1) / 0.5
  alone = dataclasses.replace(full, num_worker=1)
  assert network_times.elastic_secs(alone, 1) == 0.5 + 0.5 + 1.125
  assert network_times.elastic_secs(alone, 2) == 1.0 + 0.5 + 1.75
  assert network_times.elastic_secs(alone, 1, overlap=True) == 1.0 + 1.125
  assert network_times.hidden_period(alone) == 3  # 1.125 / 0.5


def test_overlap_takes_the_longer_one():
  assert network_times.elastic_secs(_CLUSTER, 2, overlap=True) == 1.125
  assert network_times.elastic_secs(_CLUSTER, 10, overlap=True) == 5.0
  assert network_times.elastic_secs(
      _with(host_secs=0.25), 10, overlap=True) == 5.25
  assert network_times.hidden_period(_CLUSTER) == 3
  assert network_times.hidden_period(_CLUSTER, 'float16') == 2
  assert network_times.hidden_period(_with(step_secs=99.0)) == 1


def test_workers_that_wait_for_each_other_meet():
  """Both pull at the same time, and both push."""
  assert network_times.server_secs(
      _with(num_worker=2, largest_part=0.5), synchronous=True) == 0.5 + 2 * 2
  assert network_times.server_secs(
      _with(num_worker=2, num_ps=8, latency_secs=0.1), synchronous=True) == (
          pytest.approx(0.5 + 2 + 0.4))


def test_a_ring():
  """Of 4 workers each sends 2 * 3 quarters of the model, and sums 3 of them."""
  four = _with(num_worker=4, host_secs=0.25)
  assert network_times.ring_secs(four) == 0.5 + 0.125 + 6 / 4
  assert network_times.ring_secs(four, 'float16') == 0.5 + 0.125 + 3 / 4
  assert network_times.ring_secs(_CLUSTER) == 0.5


def test_bytes_are_those_of_the_types():
  value = tf.zeros([4 * wire_types.BLOCK])
  assert set(network_times.BYTES_LEFT) == {None, *wire_types.TYPES}
  for dtype in wire_types.TYPES:
    sent = tf.nest.flatten(wire_types.encode(value, dtype))
    size = sum(int(tf.size(t)) * t.dtype.size for t in sent)
    assert size == network_times.BYTES_LEFT[dtype] * 4 * value.shape[0]


@pytest.mark.parametrize('changes, error', [
    ({'num_worker': 2.0}, TypeError), ({'num_ps': 0}, ValueError),
    ({'model_bytes': '7'}, TypeError), ({'link_bytes': 0.0}, ValueError),
    ({'latency_secs': -1.0}, ValueError), ({'largest_part': 0.0}, ValueError),
    ({'largest_part': 1.5}, ValueError), ({'host_secs': -1.0}, ValueError),
    ({'step_secs': float('nan')}, ValueError)], ids=str)
def test_what_cannot_be_is_refused(changes, error):
  with pytest.raises(error, match=f'`{next(iter(changes))}` must be'):
    _with(**changes)


def test_a_type_that_there_is_not_is_refused():
  with pytest.raises(ValueError, match='`exchange_dtype` must be one of'):
    network_times.cycle_secs(_CLUSTER, 0.0, 'float64')
