# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Model of step times where the parameter servers' links are the bottleneck.

Times are in seconds, sizes in bytes. There are W workers, P parameter servers,
and a model of M bytes. A link carries R bytes a second in each direction, and L
is the latency of one way. docs/speed.md says why, and compares with
measurements.

  g                the fraction of the model that an exchange pushes after all
                   pulls: the largest variable's, at most 1 / 8 in parts; 1 for
                   gradients
  b = max(1 / P, g)   the fraction on the fullest server, without parts; 1 / P
                   for one variable, which is taken to be partitioned
  m = f * M / R    one message of the whole model; f: the fraction of the
                   bytes that `exchange_dtype` leaves
  Z                the time between two exchanges of a worker

Where workers' cycles begin at random, mean value analysis gives the time T(W)
from one exchange of a worker to its next. For n = 1 ... W, with q(0) = 0:

  r(n) = m * max(1, (1 + q(n - 1)) * b)        a message of the whole model
  T(n) = Z + (1 + g) * r(n) + 4 * L
  q(n) = n * r(n) / T(n)                       workers on a link

  A = max(Z + (1 + g) * m + 4 * L, W * m * b)  of workers that never collide
  C(Z) = A in parts, and where 1 / 2 < g < 1; elsewhere T(W)

Let t be the period, and s the time of a step without an exchange. Let c be the
time in which such a step calls a server, and h the processor time of an
exchange. The fractions of h were observed; they are not derived:

  on the servers        a step takes max(s + h, C(s)), with g = 1
    with SyncReplicas   max(s + h, s + 2 * max(1, W * b) * m + 4 * L)
  elastic averaging     t steps take max(B + h, C(B + h / 2)), B = t * (s + c),
                        in parts if t = 1
    with overlap        t steps take max(t * s + h, C(h)), in parts
  cross shard           a step takes s + h / 2 + 2 * (W - 1) * (m / W + L)

References:
  Reiser and Lavenberg. Mean-value analysis of closed multichain queuing
  networks. Journal of the ACM 27 (1980).
"""

from __future__ import annotations

import dataclasses
import math
import numbers

# The fraction of the bits of an Ethernet link that are data: 1,448 bytes of a
# TCP segment in a frame of 1,514.
PAYLOAD = 1448 / 1514
# The fraction of float32's bytes that a type leaves; `wire_types` has the
# equations.
BYTES_LEFT = {None: 1.0, 'float16': 1 / 2, 'bfloat16': 1 / 2,
              'int8': 1 / 4 + 1 / 128}
# The largest part in which a model is sent; `pair_moves` makes the parts.
_PART = 1 / 8


@dataclasses.dataclass(frozen=True)
class Cluster:
  """A training whose network times are predicted.

  `model_bytes` is the size of all trained variables, as float32. `link_bytes`
  is the data that a link carries per second in each direction, without headers;
  see `PAYLOAD`. `num_worker` includes the chief. `largest_part` is the largest
  variable's fraction of the model; 1: it is not known. `latency_secs` is one
  way, and `host_secs` the processor time of an exchange. `call_secs` is the
  time in which each step without overlap calls the servers. It is spent without
  an exchange, too, as the step's graph has a part there.
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

  @property
  def fullest_part(self) -> float:
    """The fraction of the model on the fullest parameter server: b."""
    known = self.largest_part if self.largest_part < 1 else 0.0
    return max(1 / self.num_ps, known)


def _message_secs(cluster: Cluster, exchange_dtype: str | None) -> float:
  """Returns m, the time of one message of the whole model."""
  if exchange_dtype not in BYTES_LEFT:
    raise ValueError(
        f'`exchange_dtype` must be one of {tuple(BYTES_LEFT)}. Received: '
        f'{exchange_dtype!r}.')
  return BYTES_LEFT[exchange_dtype] * cluster.model_bytes / cluster.link_bytes


def cycle_secs(cluster: Cluster, between_secs: float,
               exchange_dtype: str | None = None,
               in_parts: bool = False) -> float:
  """Returns the time C(Z) from one exchange of a worker to its next.

  `between_secs` is Z; `in_parts` is whether large variables are sent in parts.

  Example:
    >>> alone = Cluster(1e6, 0.01, 1e8, num_worker=1)
    >>> cycle_secs(alone, 0.0), round(cycle_secs(alone, 0.01, 'float16'), 3)
    (0.02, 0.02)
  """
  last = min(cluster.largest_part, _PART) if in_parts else cluster.largest_part
  if not in_parts and not 0.5 < last < 1:
    return _colliding_cycle_secs(cluster, between_secs, exchange_dtype, last)
  message = _message_secs(cluster, exchange_dtype)
  return max(between_secs + 4 * cluster.latency_secs + (1 + last) * message,
             cluster.num_worker * message * cluster.fullest_part)


def _colliding_cycle_secs(cluster: Cluster, between_secs: float,
                           exchange_dtype: str | None,
                           last: float) -> float:
  """Returns T(W) for a push of which the part `last` takes extra time."""
  message = _message_secs(cluster, exchange_dtype)
  secs, on_link = 0.0, 0.0
  for workers in range(1, cluster.num_worker + 1):
    way = message * max(1.0, (1 + on_link) * cluster.fullest_part)
    secs = between_secs + 4 * cluster.latency_secs + (1 + last) * way
    on_link = workers * way / secs
  return secs


def elastic_secs(cluster: Cluster, period: int, overlap: bool = False,
                 exchange_dtype: str | None = None) -> float:
  """Returns the time of `period` steps of elastic averaging.

  With `overlap` an exchange runs beside the next steps.

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
                  exchange_dtype: str | None = None) -> int:
  """Returns the smallest period whose steps last as long as an exchange.

  Example:
    >>> hidden_period(Cluster(1e6, 0.01, 1e8, num_worker=1))
    2
  """
  host = cluster.host_secs
  whole = cycle_secs(cluster, host, exchange_dtype, True) - host
  # Rounding may put the quotient of equal times a little above the integer.
  return max(1, math.ceil(whole / cluster.step_secs - 1e-9))


def server_secs(cluster: Cluster, synchronous: bool = False) -> float:
  """Returns the time of a step whose variables are on the servers.

  With `synchronous` the workers wait for each other, as with SyncReplicas.
  """
  if synchronous:
    message = cluster.model_bytes / cluster.link_bytes
    secs = cluster.step_secs + 4 * cluster.latency_secs + 2 * message * max(
        1.0, cluster.num_worker * cluster.fullest_part)
  else:
    secs = _colliding_cycle_secs(cluster, cluster.step_secs, None, last=1.0)
  return max(cluster.step_secs + cluster.host_secs, secs)


def ring_secs(cluster: Cluster, exchange_dtype: str | None = None) -> float:
  """Returns the time of a step that sums gradients around a ring of workers.

  Example:
    >>> round(ring_secs(Cluster(1e6, 0.01, 1e8, num_worker=2)), 3)
    0.02
  """
  workers = cluster.num_worker
  return cluster.step_secs + cluster.host_secs / 2 + 2 * (workers - 1) * (
      _message_secs(cluster, exchange_dtype) / workers + cluster.latency_secs)
