# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shards of a TPUEstimator's model_fn over the rows of a batch, off TPU."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import local_devices
from tfplugin.distribute.shards import shared_shards
from tfplugin.distribute.shards.building import shard_run
from tfplugin.distribute.variables import same_values
from tfplugin.estimator import batches
from tfplugin.estimator import model_fn as model_fn_lib
from tfplugin.estimator.cross_shard import check_specs
from tfplugin.estimator.cross_shard import concat_outputs
from tfplugin.estimator.cross_shard import reduce_specs
from tfplugin.ops import batch_parts

tf1 = tf.compat.v1

_BATCH_SIZE, _CONTEXT = 'batch_size', 'context'
_HOST_DEVICE = '/device:CPU:0'


def shard_model_fn(model_fn: types.ModelFn, num_shards: int,
                   devices: Sequence[str] | None = None) -> types.ModelFn:
  """Returns a model_fn that builds `model_fn` once per shard of its batch.

  The shards share one set of variables. Their specs become one spec:

    loss:               the mean over the shards, weighted by their rows
    predictions, export_outputs, and the tensors of eval_metrics and host_call:
                        concatenated in the order of the shards; a scalar must
                        be the same in all shards, such as the learning rate
    train_op, hooks, scaffold_fn and the functions: the first shard's

  A `CrossShardOptimizer` reduces the gradients over the shards as on TPU.
  Without one, gradients are averaged over the shards, but summed for losses
  with `Reduction.SUM`.

  In `params` of `model_fn` a `'batch_size'` becomes the size of a shard, and
  `'context'` is its ShardContext. `devices` are used in turn. None stands for
  the local GPUs, or else the logical CPUs.
  """

  def build_shards(call: model_fn_lib.ModelFnCall):
    names = itertools.cycle(local_devices.check_devices(devices))
    return _run_shards(call, list(itertools.islice(names, num_shards)))

  return model_fn_lib.decorate(model_fn, build_shards)


def with_context(model_fn: types.ModelFn) -> types.ModelFn:
  """Returns `model_fn` with the `params['context']` of its only shard."""
  return model_fn_lib.decorate(
      model_fn, lambda call: call(**_shard_params(call.arguments, 1)))


def _run_shards(call: model_fn_lib.ModelFnCall, devices: Sequence[str]):
  model_fn_lib.check_no_strategy('ShardedTPUEstimator')
  num_shards = len(devices)
  shards = batches.split_batch(
      call.arguments['features'], call.arguments.get('labels'), num_shards)
  shares, assertions = batch_parts.row_shares(shards.rows), []
  if call.mode == tf.estimator.ModeKeys.TRAIN:
    assertions = shards.check_even('ShardedTPUEstimator')
    # The shares are known, as all are the same.
    shares = [1.0 / num_shards] * num_shards

  def build(shard: int):
    # A batch normalisation over the shards, say, asks this context for their
    # number.
    with _tf_internals.tpu_function.tpu_shard_context(num_shards):
      return call(features=shards.features[shard], labels=shards.labels[shard],
                  **_shard_params(call.arguments, num_shards))

  run = shared_shards.SharedShards(devices, shares, shares).build(
      [functools.partial(build, shard) for shard in range(num_shards)],
      list(zip(shards.features, shards.labels)))
  specs = run.results
  _check_no_tpu_sums(run, num_shards)
  check_specs(specs)
  if assertions:
    specs[0] = specs[0]._replace(
        train_op=tf.group(specs[0].train_op, *assertions))
  return reduce_specs(
      call.mode, specs, shares, concat if isinstance(
          specs[0], tf1.estimator.tpu.TPUEstimatorSpec) else (
              concat_outputs))


def _check_no_tpu_sums(run: shard_run.ShardRun, num_shards: int) -> None:
  """Raises RuntimeError if a shard sums by the TPU's own op.

  No device but a TPU can run that op, and its mere presence in a graph fails
  every `session.run`, so it cannot be replaced afterwards.
  """
  for shard in range(num_shards):
    for op in run.record.ops_of(shard):
      if _tf_internals.is_tpu_sum(op):
        raise RuntimeError(
            'A model_fn that runs without a TPU must not use the ops of a TPU. '
            f'Received: {op.name}, made by '
            '`tf.compat.v1.tpu.cross_replica_sum` or '
            '`tf.compat.v1.tpu.CrossShardOptimizer`. Use '
            '`tfplugin.cross_replica_sum` and `tfplugin.CrossShardOptimizer`, '
            'which use the TPU where there is one.')


def _shard_params(arguments: dict[str, Any],
                  num_shards: int) -> dict[str, Any]:
  """Returns the keyword `params` of a shard, if `arguments` has one."""
  if 'params' not in arguments:
    return {}
  params = dict(arguments['params'])
  if _BATCH_SIZE in params:
    params[_BATCH_SIZE] //= num_shards
  params[_CONTEXT] = ShardContext(num_shards)
  return {'params': params}


def concat(name: str, values: Sequence[Any]) -> Any:
  """Concatenates as `concat_outputs`, but refuses scalars that differ.

  A TPU refuses every scalar here.
  """
  result = concat_outputs(name, values)
  for leaves in zip(*map(tf.nest.flatten, values)):
    if tf.convert_to_tensor(leaves[0]).shape.rank == 0 and (
        not same_values.are_same(leaves)):
      raise ValueError(
          f'A tensor of `{name}` must have the dimension of the batch where '
          'shards compute values of their own. Received: the scalar '
          f'{leaves[0]!r}. Return one value for each row, or '
          '`tf.reshape(x, [1])`: one for each shard.')
  return result


@dataclasses.dataclass(frozen=True)
class ShardContext:
  """A TPUContext for programs off TPU: one host, N shards.

  `num_replicas` is the number of shards. `invocation` is the index of this call
  of an input_fn, which is called `num_invocations` times for one input. It is
  None in a model_fn.
  """

  num_replicas: int
  invocation: int | None = None
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
          "`params['context'].device_assignment` must be used in the model_fn. "
          'Received: a call in the input_fn.')

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
          f"`params['context'].{name}` must be used in the input_fn. Received: "
          'a call in the model_fn.')
