# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""`params['context']` of TPU programs, where the shards are on this host."""

from __future__ import annotations

import dataclasses
from typing import Any
from typing import Callable
from typing import Optional

_HOST_DEVICE = '/device:CPU:0'


@dataclasses.dataclass(frozen=True)
class ShardContext:
  """A TPUContext for programs off TPU: one host, N shards.

  Attributes:
    num_replicas: The number of shards.
    invocation: The index of this call of an input_fn. None in a model_fn.
    num_invocations: The number of calls of an input_fn for one input.
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
    """The index of the host, 0; for an input_fn.

    Raises:
      RuntimeError: Asked in a model_fn.
    """
    self._check_in_input_fn('current_host')
    return 0

  def current_input_fn_deployment(self) -> tuple[str, int, int, int]:
    """Returns the part of the input that this call of the input_fn makes.

    Returns:
      The device that it runs on, the index of the call, the number of calls,
      and the number of shards that the call feeds.

    Raises:
      RuntimeError: Called in a model_fn.
    """
    self._check_in_input_fn('current_input_fn_deployment()')
    return (_HOST_DEVICE, self.invocation, self.num_invocations,
            self.num_replicas // self.num_invocations)

  @property
  def device_assignment(self) -> Any:
    """None: a shard is on one device; for a model_fn.

    Raises:
      RuntimeError: Asked in an input_fn.
    """
    if self.invocation is not None:
      raise RuntimeError(
          "`params['context'].device_assignment` must be asked for in the "
          'model_fn. Received: a call in the input_fn.')

  def device_for_replica(self, replica_id: int) -> tuple[str, int]:
    """Returns the host's device for a shard, and the shard's number there.

    Args:
      replica_id: The index of the shard.
    """
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
