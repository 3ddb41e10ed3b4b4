# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The equations of the network: by hand, at their limits, beside figures.

The figures are measured: two workers and a parameter server in namespaces of
the network with links of 1 Gbit/s and 100 Mbit/s, a model of 7.45 MB.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.ops import network_times
from tfplugin.ops import wire_types

# A message of the model takes a second.
_CLUSTER = network_times.Cluster(
    model_bytes=100.0, step_secs=0.5, link_bytes=100.0, num_worker=1)


def _with(**changes):
  return dataclasses.replace(_CLUSTER, **changes)


def test_one_worker_pulls_and_then_pushes():
  assert network_times.communication_secs(_CLUSTER, 0.0) == 2.0
  assert network_times.communication_secs(_CLUSTER, 9.0, 'float16') == 1.0
  assert network_times.communication_secs(
      _with(latency_secs=0.25), 0.0) == 2.0 + 4 * 0.25
  assert network_times.async_secs(_CLUSTER) == 2.5
  assert network_times.elastic_secs(_CLUSTER, 10) == 5.0 + 2.0


def test_a_message_finds_half_of_the_one_before_it():
  """Without pauses the other one's is on each link for half of the time."""
  two = _with(num_worker=2)
  assert network_times.communication_secs(two, 0.0) == 2 * (1 + 0.5 * 0.5)
  # With a pause of 2 s: on each link for 1 s of 4.
  assert network_times.communication_secs(two, 2.0) == 2 * (1 + 0.25 * 0.5)


def test_latency_is_a_pause_for_the_link():
  """On each link for 1 s of 2 + 4 / 2: r(2) = 1 + 1 / 8."""
  np.testing.assert_allclose(
      network_times.communication_secs(
          _with(num_worker=2, latency_secs=0.5), 0.0),
      2 * (1 + 0.25 * 0.5) + 4 * 0.5, rtol=1e-12)


def test_three_workers_by_hand():
  """r(2) = 5/4, x(2) = 2 / 2.5 = 4/5, q(2) = 1, u(2) = 4/5."""
  np.testing.assert_allclose(
      network_times.communication_secs(_with(num_worker=3), 0.0),
      2 * (1 + 1 - 0.4), rtol=1e-12)


def test_many_workers_share_the_link():
  many = _with(num_worker=400)
  rate = 400 / network_times.communication_secs(many, 0.0)
  assert 0.99 < rate <= 1.0
  # Two servers carry twice as much; a worker's own link is the limit of few.
  twice = 400 / network_times.communication_secs(
      dataclasses.replace(many, num_ps=2), 0.0)
  assert 1.98 < twice <= 2.0
  assert network_times.communication_secs(_with(num_ps=8), 0.0) == 2.0


def test_overlap_takes_the_longer_one():
  assert network_times.elastic_secs(_CLUSTER, 3, overlap=True) == 2.0
  assert network_times.elastic_secs(_CLUSTER, 10, overlap=True) == 5.0
  assert network_times.elastic_secs(
      _with(host_secs=0.25), 10, overlap=True) == 5.25
  assert network_times.hidden_period(_CLUSTER) == 4
  assert network_times.hidden_period(_CLUSTER, 'float16') == 2
  assert network_times.hidden_period(_with(step_secs=99.0)) == 1


def test_steps_that_wait_for_all():
  """All pull at once and push at once; a ring of 4 sends 2 * 3 quarters."""
  four = _with(num_worker=4)
  assert network_times.sync_secs(four) == 0.5 + 4 * 2
  assert network_times.sync_secs(
      dataclasses.replace(four, num_ps=8)) == 0.5 + 2
  assert network_times.ring_secs(four) == 0.5 + 6 / 4
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
    ({'latency_secs': -1.0}, ValueError),
    ({'step_secs': float('nan')}, ValueError)], ids=str)
def test_what_cannot_be_is_refused(changes, error):
  with pytest.raises(error, match=f'`{next(iter(changes))}` must be'):
    _with(**changes)


def test_a_type_that_there_is_not_is_refused():
  with pytest.raises(ValueError, match='`exchange_dtype` must be one of'):
    network_times.communication_secs(_CLUSTER, 0.0, 'float64')


def _measured_on(mbit, step_secs, **kwargs):
  return network_times.Cluster(
      7.45e6, step_secs, mbit * 1e6 / 8 * network_times.PAYLOAD, 2, **kwargs)


def _off(predicted, measured):
  return abs(predicted / measured - 1)


@pytest.mark.parametrize('mbit, of_async, by_period', [
    (1000, 6.9, {1: 6.8, 10: 54.0, 100: 122.7}),
    (100, 0.63, {1: 0.62, 10: 6.0, 100: 43.8})])
def test_measured_on_a_busy_machine(mbit, of_async, by_period):
  """A step of 7.0 ms follows from the cells of period 10 and 100 alone."""
  ten, hundred = 10 / by_period[10], 100 / by_period[100]
  assert (hundred - ten) / 90 == pytest.approx(0.007, rel=0.03)
  cluster = _measured_on(mbit, 0.007)
  assert _off(1 / network_times.async_secs(cluster), of_async) < 0.11
  for period, rate in by_period.items():
    assert _off(period / network_times.elastic_secs(cluster, period),
                rate) < 0.15


@pytest.mark.parametrize('period, plain, overlap, float16, both', [
    (10, 61, 66, 104, 137), (40, 145, 217, 184, 219)])
def test_measured_on_an_idle_machine(period, plain, overlap, float16, both):
  """Local steps alone make 245 in a second."""
  cluster = _measured_on(1000, 1 / 245)
  for is_overlap, dtype, rate in ((False, None, plain), (True, None, overlap),
                                  (False, 'float16', float16),
                                  (True, 'float16', both)):
    predicted = period / network_times.elastic_secs(
        cluster, period, is_overlap, dtype)
    assert _off(predicted, rate) < 0.15
    # What the exchange takes of two cores that workers and server share.
    if is_overlap:
      busy = dataclasses.replace(cluster, host_secs=0.02)
      assert _off(period / network_times.elastic_secs(
          busy, period, True, dtype), rate) < 0.07
