# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decorator for a model_fn that trains on shards of a batch, one per device."""

from __future__ import annotations

import copy
import functools
from collections.abc import Collection
from collections.abc import Sequence

import tensorflow as tf

from tfplugin import types
from tfplugin.distribute import local_devices
from tfplugin.distribute import optimizer_interception
from tfplugin.distribute.shards import shared_shards
from tfplugin.estimator import batch_sharding
from tfplugin.estimator import decorator_stack
from tfplugin.estimator import model_fn as model_fn_lib
from tfplugin.estimator import shard_specs
from tfplugin.ops import shard_reduction
from tfplugin.optimizers import cross_shard as cross_shard_lib

tf1 = tf.compat.v1

_Optimizer = cross_shard_lib.CrossShardOptimizer
_MEAN = shard_reduction.MEAN


def cross_shard(
    model_fn: types.ModelFn | None = None,
    *,
    devices: Sequence[str] | None = None,
    reduction: str = _MEAN,
    group_assignment: shard_reduction.GroupAssignment = None,
    broadcast: Collection[str] = (),
) -> types.ModelFn:
  """Returns a model_fn that computes each step on shards of its batch.

  The batch is split along its first dimension, in order, into one shard per
  device. Each shard computes its own loss and gradients, as the shards of a TPU
  do. The gradients are reduced over the shards once:

    gradient = scale * sum over the shards of gradient[shard]
    scale = 1 / number of shards with MEAN, 1 with SUM

  With `group_assignment` both are over the shards of a group. On TPU the
  variables of different groups diverge, and a checkpoint holds the variables of
  the first shard. Here variables are made once, and equal that checkpoint: they
  follow the group of shard 0.

  Mean losses of `tf.compat.v1.losses` divide by the count of the whole batch
  (or group) over the number of shards. MEAN is therefore the mean of the batch,
  weights included.

  The scale is applied where an optimizer computes gradients. Gradients of
  `tf.gradients` belong to one shard and are summed. A change in between
  (clipping, say) acts on one shard, as on TPU, and a warning names its op.
  Gradients that the model_fn has summed by `tfplugin.cross_replica_sum` are
  applied as they are: sum them first to clip the gradients of the whole batch.

  A loss that was built with `Reduction.SUM` is a sum over the batch. It is
  summed, alone and as a term of the minimised loss; only the ops of that loss
  decide. Other uses of it (its square root, a quotient by the rows) are
  refused.

  Choose `tfplugin.replicate_model_fn` where all numbers must be as on one
  device; choose `cross_shard` for programs that are written for shards.

  The model_fn stays as it is, with a plain `tf.compat.v1.train` optimizer. A
  `tfplugin.CrossShardOptimizer` reduces by its own arguments, once.
  `tfplugin.cross_replica_sum` inside the model_fn sums over the shards.

  Gradients that are accumulated over steps in a variable, with `assign_add` and
  without an `aggregation`, are the gradients of all shards. The variable gets
  the mean over the group of shard 0. It may be applied in a branch of
  `tf.cond`. Any other write to such a variable has the value of one device with
  the rows of the group, computed again from them. A value that cannot be
  computed again (at random, in a loop) must be the same in all shards, or is
  refused. Summaries, and named values that no other op uses, are of all rows,
  too.

  Variables are made once; checkpoints have the names of one device. The loss is
  the mean over the shards, or the sum with SUM (of several groups: the mean of
  their sums); train_op, hooks and scaffold come from the first shard. EVAL and
  PREDICT run the plain model_fn on the whole batch.

  Args:
    model_fn: As for `tf.estimator.Estimator`. Left out, a decorator is
      returned: `@cross_shard`, `@cross_shard(devices=['/cpu:0', '/cpu:1'])`.
    devices: Device strings, one per shard. By default the local GPUs, or else
      the logical CPUs, found without initialising them.
    reduction: `tf.compat.v1.losses.Reduction.MEAN` or `SUM`.
    group_assignment: List of lists of shard indices that reduce together, all
      of one size. None: all of them. For a copy of the variables per shard use
      `tfplugin.distribute.CrossShardStrategy`.
    broadcast: Keys of features or labels that every shard gets whole.

  Returns:
    A model_fn with the same signature.

  Raises:
    TypeError: `model_fn` is not callable, `devices` not a list of strings. When
      called: the model_fn returns no EstimatorSpec.
    ValueError: Another `reduction`; groups that do not fit the devices; the
      model_fn does not take `features`; a decorator below this one cannot be
      there. When called: no loss, no train_op, specs that differ between
      shards, or a number of rows that is no multiple of the number of shards.
      (Where its size is not static, the step raises `InvalidArgumentError`.) Or
      a loss with `Reduction.SUM` that is used other than as a term of a sum.
    RuntimeError: When called: inside another strategy, or shards that make
      different variables, losses or calls of an optimizer.

  Differences from tf.contrib: it had the optimizer only, for TPU.

  Example:
    >>> import numpy as np
    >>> import tensorflow as tf
    >>> import tfplugin.estimator
    >>> tf1 = tf.compat.v1
    >>> @tfplugin.estimator.cross_shard(devices=['/cpu:0', '/cpu:0'])
    ... def model_fn(features, labels, mode):
    ...   w = tf1.get_variable('w', initializer=[[0.0]])
    ...   loss = tf1.losses.mean_squared_error(labels, features @ w)
    ...   optimizer = tf1.train.GradientDescentOptimizer(0.1)
    ...   train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    ...   return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    >>> def input_fn():
    ...   x = np.array([[1.0], [2.0]], np.float32)
    ...   return tf.data.Dataset.from_tensors((x, 2.0 * x))
    >>> estimator = tf.estimator.Estimator(model_fn)
    >>> _ = estimator.train(input_fn)
    >>> # w = 0.1 * (2 * 1 * 2 + 2 * 2 * 4) / 2
    >>> print(round(float(estimator.get_variable_value('w')[0, 0]), 4))
    1.0
  """
  shard_reduction.check(reduction)
  shard_reduction.check_groups(group_assignment)
  broadcast = batch_sharding.check_broadcast(broadcast)
  if devices is not None:
    devices = local_devices.check_devices(devices)
    shard_reduction.check_groups(group_assignment, len(devices))

  def run(call: model_fn_lib.ModelFnCall):
    if call.mode != tf.estimator.ModeKeys.TRAIN:
      return call()
    names = devices
    if devices is None:
      names = local_devices.local_devices()
      shard_reduction.check_groups(group_assignment, len(names))
    return _run_shards(call, names, reduction, group_assignment, broadcast)

  return model_fn_lib.decorate(model_fn, run, decorator_stack.CROSS_SHARD)


def _run_shards(call: model_fn_lib.ModelFnCall, devices: Sequence[str],
                reduction: str, groups: shard_reduction.GroupAssignment,
                broadcast: Collection[str]):
  """Builds the shards of one call and reduces their specs."""
  decorator_stack.check_no_strategy(decorator_stack.CROSS_SHARD)
  arguments = call.arguments
  shards = batch_sharding.split_batch(
      arguments['features'], arguments.get('labels'), len(devices), broadcast)
  assertions = shards.check_even(decorator_stack.CROSS_SHARD)
  strategy = shared_shards.SharedShards(
      devices, reduction=reduction, group_assignment=groups)
  # One device may be a shard of another kind: a process of Horovod.
  rule = strategy.extended.apply_sums if len(devices) > 1 else None
  wrap = functools.partial(
      _Optimizer, reduction=reduction, group_assignment=groups)
  batch, calls = list(zip(shards.features, shards.labels)), []
  for features, labels in batch:
    own = {'features': features, 'labels': labels}
    if 'params' in arguments:
      own['params'] = copy.deepcopy(arguments['params'])
    calls.append(functools.partial(
        decorator_stack.intercepted, functools.partial(call, **own),
        optimizer_interception.Interception(
            wrap, _Optimizer, is_whole=True, rule=rule),
        decorator_stack.CROSS_SHARD, 'tfplugin.CrossShardOptimizer(opt)'))
  # The mean over the groups of each group's mean or sum.
  spec = shard_specs.reduce_specs(
      call.mode, strategy.build(calls, batch).results,
      [strategy.divided_by_keras / len(devices)] * len(devices),
      part_of_loss=strategy.part_of_loss)
  return spec._replace(train_op=tf.group(spec.train_op, *assertions))
