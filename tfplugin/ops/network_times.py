# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""How long steps take where the link of the parameter servers is the limit.

In seconds and bytes, with W workers, P parameter servers, a model of M bytes
whose largest variable has the part g of them, links that carry R bytes a second
in each direction, and L the latency of a way:

  m = f * M / R    one message of the whole model; f: the share of the bytes
                   that `exchange_dtype` leaves
  Z                what a worker does between two communications

A communication pulls the model and then pushes it. In elastic averaging each
variable is pushed as soon as it is pulled, so that beside what is pulled only
the largest one takes time of its own: (1 + g) * m, and elsewhere g = 1, since
gradients need all variables. With overlap, and with period 1, what goes by
itself is at most a part of an eighth: g <= 1 / 8. The two directions of a link
do not wait for each other, but the workers do: those whose messages are on a
link share it alike. Where it is left to chance where each is in its cycle when
the others begin, mean value analysis has the time from one communication of a
worker to its next, T(W): for n = 1 ... W workers, with q(0) = 0 of them on a
link,

  r(n) = m * max(1, (1 + q(n - 1)) / P)        a message of the whole model
  T(n) = Z + (1 + g) * r(n) + 4 * L
  q(n) = n * r(n) / T(n)

Workers that never meet need the time of one alone, unless their messages fill
the servers' links:

  A = max(Z + (1 + g) * m + 4 * L, W * m / P)

In elastic averaging a server sends the largest variable first, and its push is
beside the pulls of the others. Where it is more than all of them, workers that
meet come apart within some tens of communications, and stay so until something
disturbs one of them: C(Z) = A where 1 / 2 < g < 1. So it is in parts, within a
few communications. Elsewhere C(Z) = T(W). All have been measured. Simulations
of links whose shares are nearly alike have the same, but in parts up to three
tenths more: there two workers that meet go on meeting.

With t the period, s the time of a step that communicates nothing, c what a step
takes to call a server for nothing, and h what a communication takes of the
processors:

  on the servers        a step takes max(s + h, C(s)), with g = 1
  elastic averaging     t steps take max(B + h, C(B + h / 2)), B = t * (s + c),
                        in parts if t = 1
    with overlap        t steps take max(t * s + h, C(h)), in parts
  cross shard           a step takes s + h / 2 + 2 * (W - 1) * (M / (W * R) + L)

On the servers are the variables of asynchronous SGD, of drop stale and of
clipping. Also those of SyncReplicas, whose workers wait for each other and so
pull and push at the same time: max(s + h, s + 2 * W * m / P + 4 * L). Cross
shard is a ring, without a server. What hosts do is beside the messages of other
workers, and beside those of the worker itself in part: half of it where nothing
else is to be done, and nothing of it beside steps, which need the processors.
That these are the parts has been seen of workers that have come apart, and does
not follow from something.

References:
  Reiser and Lavenberg. Mean-value analysis of closed multichain queuing
  networks. Journal of the ACM 27 (1980).
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
# The largest part of what a server sends in parts; `packed_moves` makes them.
_PART = 1 / 8


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
    largest_part: The largest variable's part of the model, above 0.
    latency_secs: Of one way.
    host_secs: What a communication takes of the processors.
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
  largest_part: float = 1.0
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
      may_be_0 = field.default == 0.0
      if not (math.isfinite(value) and (value > 0 or may_be_0 and value == 0)):
        raise ValueError(
            f'`{field.name}` must be {"at least 0" if may_be_0 else "positive"}'
            f' and finite. Received: {value!r}.')
    if self.largest_part > 1:
      raise ValueError('`largest_part` must be at most 1, the whole model. '
                       f'Received: {self.largest_part!r}.')


def cycle_secs(cluster: Cluster, between_secs: float,
               exchange_dtype: Optional[str] = None,
               in_parts: bool = False) -> float:
  """The time C(Z) from one communication of a worker to its next.

  Args:
    cluster: The training.
    between_secs: Z, what a worker does between two of them.
    exchange_dtype: A key of `BYTES_LEFT`.
    in_parts: Whether large variables go in parts.

  Raises:
    ValueError: `exchange_dtype` is none.

  Example:
    >>> alone = Cluster(1e6, 0.01, 1e8, num_worker=1)
    >>> cycle_secs(alone, 0.0), round(cycle_secs(alone, 0.01, 'float16'), 3)
    (0.02, 0.02)
  """
  if exchange_dtype not in BYTES_LEFT:
    raise ValueError(
        f'`exchange_dtype` must be one of {tuple(BYTES_LEFT)}. Received: '
        f'{exchange_dtype!r}.')
  message = BYTES_LEFT[exchange_dtype] * cluster.model_bytes / (
      cluster.link_bytes)
  between_secs += 4 * cluster.latency_secs
  last = min(cluster.largest_part, _PART) if in_parts else cluster.largest_part
  if in_parts or 0.5 < last < 1:
    return max(between_secs + (1 + last) * message,
               cluster.num_worker * message / cluster.num_ps)
  secs, on_link = 0.0, 0.0
  for workers in range(1, cluster.num_worker + 1):
    way = message * max(1.0, (1 + on_link) / cluster.num_ps)
    secs = between_secs + (1 + last) * way
    on_link = workers * way / secs
  return secs


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
  steps, host = period * cluster.step_secs, cluster.host_secs
  if overlap:
    return max(steps + host, cycle_secs(cluster, host, exchange_dtype, True))
  steps += period * cluster.call_secs
  return max(steps + host,
             cycle_secs(cluster, steps + host / 2, exchange_dtype,
                        period == 1))


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
  host = cluster.host_secs
  whole = cycle_secs(cluster, host, exchange_dtype, True) - host
  # The quotient of what is equal may be a little above the integer.
  return max(1, math.ceil(whole / cluster.step_secs - 1e-9))


def server_secs(cluster: Cluster, meets: bool = False) -> float:
  """The time of a step whose variables are on the servers.

  Args:
    cluster: The training.
    meets: Whether the workers wait for each other, as those of SyncReplicas.
  """
  if meets:
    message = cluster.model_bytes / cluster.link_bytes
    secs = cluster.step_secs + 4 * cluster.latency_secs + 2 * message * max(
        1.0, cluster.num_worker / cluster.num_ps)
  else:
    whole = dataclasses.replace(cluster, largest_part=1.0)
    secs = cycle_secs(whole, cluster.step_secs)
  return max(cluster.step_secs + cluster.host_secs, secs)


def ring_secs(cluster: Cluster) -> float:
  """The time of a step that sums gradients around a ring of the workers.

  Args:
    cluster: The training.

  Example:
    >>> round(ring_secs(Cluster(1e6, 0.01, 1e8, num_worker=2)), 3)
    0.02
  """
  workers = cluster.num_worker
  return cluster.step_secs + cluster.host_secs / 2 + 2 * (workers - 1) * (
      cluster.model_bytes / (workers * cluster.link_bytes) +
      cluster.latency_secs)
