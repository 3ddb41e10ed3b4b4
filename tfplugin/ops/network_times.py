# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""How long steps take where the link of the parameter servers is the limit.

In seconds and bytes, with W workers, P parameter servers, a model of M bytes,
links that carry R bytes a second in each direction, and L the latency of a way:

  D = f * M / (P * R)             what a server's link needs for one message of
                                  one worker; f: the share of the bytes that
                                  `exchange_dtype` leaves
  Z                               what a worker does between two communications

A communication pulls and then pushes. The two directions of a link do not wait
for each other, but the workers do: those whose messages are on a link share it.
For that mean value analysis is exact, however long the messages and the pauses
are, and however they vary. For n = 1 ... W workers, with q = 0 for none,

  r(n) = max(f * M / R, D * (1 + q(n - 1)))
  q(n) = n * r(n) / (Z + 2 * r(n) + 4 * L)

  C(Z) = 2 * r(W) + 4 * L

so that one worker alone has C = 2 * f * M / R, two without a pause 3 / 2 of
that, and very many share R / (f * M) communications a second. With t the
period, s the time of a local step, h what a communication takes of the
processors, and c what a step takes to call a server for nothing,

  on the servers        Z = s + h;           a step takes Z + C(Z)
  elastic averaging     Z = t * (s + c) + h; t steps take Z + C(Z)
    with overlap                             t steps take max(t * s + h, C(0))
  cross shard           a step takes s + h + 2 * (W - 1) * (M / (W * R) + L)

On the servers are the variables of asynchronous SGD, of drop stale and clipping
and of SyncReplicas, whose workers wait for each other but may be a step apart;
cross shard is a ring, without a server.

References:
  Reiser and Lavenberg. Mean-value analysis of closed multichain queuing
  networks. Journal of the ACM 27 (1980).
  Baskett, Chandy, Muntz and Palacios. Open, closed, and mixed networks of
  queues with different classes of customers. Journal of the ACM 22 (1975): of
  a link that is shared, the means alone matter.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from typing import Optional

# Of the bits of an Ethernet link: 1,448 bytes of a TCP segment in a frame of
# 1,514.
PAYLOAD = 1448 / 1514
# What a type leaves of the bytes of float32; `wire_types` has the equations.
BYTES_LEFT = {None: 1.0, 'float16': 1 / 2, 'bfloat16': 1 / 2,
              'int8': 1 / 4 + 1 / 128}


@dataclasses.dataclass(frozen=True)
class Cluster:
  """A training whose network is to be foreseen.

  Attributes:
    model_bytes: The bytes of all trained variables, float32.
    step_secs: The time of a step that communicates nothing.
    link_bytes: What each link carries in a second, in each direction, without
      the headers; see `PAYLOAD`.
    num_worker: The workers, the chief included.
    num_ps: The parameter servers, which have equal parts of the model.
    latency_secs: Of one way.
    host_secs: What a communication takes of the processors, beside the link.
    call_secs: What each step without overlap takes to call the servers, also
      where it communicates nothing: its graph has a part there.

  Raises:
    TypeError: One is of the wrong type.
    ValueError: One is out of range.
  """

  model_bytes: float
  step_secs: float
  link_bytes: float
  num_worker: int
  num_ps: int = 1
  latency_secs: float = 0.0
  host_secs: float = 0.0
  call_secs: float = 0.0

  def __post_init__(self):
    for field in dataclasses.fields(self):
      value, is_count = getattr(self, field.name), field.name.startswith('num')
      kind = numbers.Integral if is_count else numbers.Real
      if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(
            f'`{field.name}` must be {"an integer" if is_count else "a number"}'
            f'. Received: {value!r}.')
      may_be_0 = field.default is not dataclasses.MISSING and not is_count
      if not (math.isfinite(value) and (value > 0 or may_be_0 and value == 0)):
        raise ValueError(
            f'`{field.name}` must be {"at least 0" if may_be_0 else "positive"}'
            f' and finite. Received: {value!r}.')


def communication_secs(cluster: Cluster, between_secs: float,
                       exchange_dtype: Optional[str] = None) -> float:
  """The time C(Z) of a pull and a push of the model.

  Args:
    cluster: The training.
    between_secs: Z, what a worker does between two of them.
    exchange_dtype: A key of `BYTES_LEFT`.

  Raises:
    ValueError: `exchange_dtype` is none.

  Example:
    >>> alone = Cluster(1e6, 0.01, 1e8, num_worker=1)
    >>> communication_secs(alone, 0.0)
    0.02
    >>> communication_secs(alone, 0.0, 'float16')
    0.01
  """
  if exchange_dtype not in BYTES_LEFT:
    raise ValueError(
        f'`exchange_dtype` must be one of {tuple(BYTES_LEFT)}. Received: '
        f'{exchange_dtype!r}.')
  own = BYTES_LEFT[exchange_dtype] * cluster.model_bytes / cluster.link_bytes
  demand = own / cluster.num_ps
  on_link = way = 0.0
  for workers in range(1, cluster.num_worker + 1):
    way = max(own, demand * (1 + on_link))
    on_link = workers * way / (
        between_secs + 2 * way + 4 * cluster.latency_secs)
  return 2 * way + 4 * cluster.latency_secs


def elastic_secs(cluster: Cluster, period: int, overlap: bool = False,
                 exchange_dtype: Optional[str] = None) -> float:
  """The time of `period` steps of elastic averaging.

  Args:
    cluster: The training.
    period: Steps from one communication to the next.
    overlap: Whether a communication runs beside the next steps.
    exchange_dtype: A key of `BYTES_LEFT`.

  Example:
    >>> alone = Cluster(1e6, 0.01, 1e8, num_worker=1)
    >>> round(elastic_secs(alone, 4), 3), elastic_secs(alone, 4, overlap=True)
    (0.06, 0.04)
  """
  busy = period * cluster.step_secs + cluster.host_secs
  if overlap:
    return max(busy, communication_secs(cluster, 0.0, exchange_dtype))
  busy += period * cluster.call_secs
  return busy + communication_secs(cluster, busy, exchange_dtype)


def hidden_period(cluster: Cluster,
                  exchange_dtype: Optional[str] = None) -> int:
  """The smallest period whose steps last as long as what is beside them.

  Args:
    cluster: The training.
    exchange_dtype: A key of `BYTES_LEFT`.

  Example:
    >>> hidden_period(Cluster(1e6, 0.01, 1e8, num_worker=1))
    2
  """
  whole = communication_secs(cluster, 0.0, exchange_dtype)
  # The quotient of what is equal may be a little above the integer.
  return max(1, math.ceil(whole / cluster.step_secs - 1e-9))


def server_secs(cluster: Cluster) -> float:
  """The time of a step whose variables are on the servers."""
  return elastic_secs(dataclasses.replace(cluster, call_secs=0.0), 1)


def ring_secs(cluster: Cluster) -> float:
  """The time of a step that sums gradients around a ring of the workers.

  Args:
    cluster: The training.

  Example:
    >>> round(ring_secs(Cluster(1e6, 0.01, 1e8, num_worker=2)), 3)
    0.02
  """
  workers = cluster.num_worker
  return cluster.step_secs + cluster.host_secs + 2 * (workers - 1) * (
      cluster.model_bytes / (workers * cluster.link_bytes) +
      cluster.latency_secs)
