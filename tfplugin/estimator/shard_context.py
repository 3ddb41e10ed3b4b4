# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The `params['context']` of TPU programs, for shards on this host."""

from __future__ import annotations

import dataclasses
from typing import Any
from typing import Callable
from typing import Optional

_HOST_DEVICE = '/device:CPU:0'


@dataclasses.dataclass(frozen=True)
class ShardContext:
  """A TPUContext for programs off TPU: one host, N shards.

  `num_replicas` is the number of shards. `invocation` is the index of this call
  of an input_fn, which is called `num_invocations` times for one input. It is
  None in a model_fn.
  """

  num_replicas: int
  invocation: Optional[int] = None
  num_invocations: int = 1

  @property
  def num_hosts(self) -> int:
    """1: the shards are on this host."""
    return 1

  @property
  def num_of_replicas_per_host(self) -> int:
    """The number of shards."""
    return self.num_replicas

  @property
  def current_host(self) -> int:
    """The index of the host, 0; raises RuntimeError in a model_fn."""
    self._check_in_input_fn('current_host')
    return 0

  def current_input_fn_deployment(self) -> tuple[str, int, int, int]:
    """Returns the part of the input that this call of the input_fn makes.

    The parts are its device, the index of the call, the number of calls, and
    the number of shards that the call feeds. Raises RuntimeError in a model_fn.
    """
    self._check_in_input_fn('current_input_fn_deployment()')
    return (_HOST_DEVICE, self.invocation, self.num_invocations,
            self.num_replicas // self.num_invocations)

  @property
  def device_assignment(self) -> Any:
    """None, as a shard is on one device; raises RuntimeError in an input_fn."""
    if self.invocation is not None:
      raise RuntimeError(
          "`params['context'].device_assignment` must be asked for in the "
          'model_fn. Received: a call in the input_fn.')

  def device_for_replica(self, replica_id: int) -> tuple[str, int]:
    """Returns the host's device for a shard, and the shard's index there."""
    return _HOST_DEVICE, replica_id

  @property
  def tpu_host_placement_function(self) -> Callable[[int], str]:
    """A function from the index of a host to its device."""
    return lambda host_id: _HOST_DEVICE

  def _check_in_input_fn(self, name: str) -> None:
    if self.invocation is None:
      raise RuntimeError(
          f"`params['context'].{name}` must be asked for in the input_fn. "
          'Received: a call in the model_fn.')
