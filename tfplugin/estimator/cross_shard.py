# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decorator for a model_fn that trains on shards of a batch, one per device.

The specs of the shards become one spec, here and under ShardedTPUEstimator.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import types
from tfplugin.distribute import local_devices
from tfplugin.distribute.shards import shared_shards
from tfplugin.distribute.shards.writes import write_audit
from tfplugin.distribute.towers import split_model
from tfplugin.distribute.updates import optimizer_interception
from tfplugin.estimator import batches
from tfplugin.estimator import decorator_stack
from tfplugin.estimator import model_fn as model_fn_lib
from tfplugin.ops import batch_parts
from tfplugin.ops import shard_reduction
from tfplugin.optimizers import cross_shard as cross_shard_lib

tf1 = tf.compat.v1

_Optimizer = cross_shard_lib.CrossShardOptimizer
_MEAN = shard_reduction.MEAN
# The arguments of a Scaffold that a user may give.
_OF_SCAFFOLDS = ('init_op', 'init_fn', 'ready_op', 'ready_for_local_init_op',
                 'local_init_op', 'summary_op', 'saver')


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
  broadcast = batches.check_broadcast(broadcast)
  if devices is not None:
    devices = local_devices.check_devices(devices)
    shard_reduction.check_groups(group_assignment, len(devices))

  def build_shards(call: model_fn_lib.ModelFnCall):
    if call.mode != tf.estimator.ModeKeys.TRAIN:
      return call()
    names = devices
    if devices is None:
      names = local_devices.local_devices()
      shard_reduction.check_groups(group_assignment, len(names))
    return _run_shards(call, names, reduction, group_assignment, broadcast)

  return model_fn_lib.decorate(
      model_fn, build_shards, decorator_stack.CROSS_SHARD,
      alone_in=(tf.estimator.ModeKeys.TRAIN,))


def _run_shards(call: model_fn_lib.ModelFnCall, devices: Sequence[str],
                reduction: str, groups: shard_reduction.GroupAssignment,
                broadcast: Collection[str]):
  """Builds the shards of one call and reduces their specs."""
  arguments = call.arguments
  shards = batches.split_batch(
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
        model_fn_lib.intercepted, functools.partial(call, **own),
        optimizer_interception.Interception(
            wrap, _Optimizer, is_whole=True, rule=rule),
        decorator_stack.CROSS_SHARD, 'tfplugin.CrossShardOptimizer(opt)'))
  # The mean over the groups of each group's mean or sum.
  spec = reduce_specs(
      call.mode, strategy.build(calls, batch).results,
      [strategy.divided_by_keras / len(devices)] * len(devices),
      part_of_loss=strategy.part_of_loss)
  return spec._replace(train_op=tf.group(spec.train_op, *assertions))


def reduce_specs(
    mode: str, specs: Sequence[Any],
    loss_weights: Sequence[batch_parts.Weight],
    concat_fn: Callable[[str, Sequence[Any]], Any] | None = None,
    part_of_loss: Callable[[tf.Tensor], tf.Tensor] = lambda loss: loss) -> Any:
  """Returns the spec of the whole batch; raises if a shard's spec differs.

  The loss is the sum of the shards' losses, weighted by `loss_weights`, after
  `part_of_loss` of each. `concat_fn` joins predictions, export outputs and the
  tensors of eval_metrics and host_call in the order of the shards. All other
  fields (train_op, metrics, hooks, scaffold) come from the first shard:
  gradients, assignments to variables and batch statistics of all shards have
  been combined before.
  """
  check_specs(specs)
  join, first, replaced = concat_fn or concat_outputs, specs[0], {}
  if first.predictions is not None:
    replaced['predictions'] = join(
        'predictions', [spec.predictions for spec in specs])
  if mode == tf.estimator.ModeKeys.PREDICT and first.export_outputs:
    replaced['export_outputs'] = {
        key: split_model.export_output(
            key, [spec.export_outputs[key] for spec in specs], concat_outputs)
        for key in first.export_outputs}
  for field in ('eval_metrics', 'host_call'):
    if getattr(first, field, None) is not None:
      function, _ = getattr(first, field)
      replaced[field] = (function, join(
          field, [getattr(spec, field)[1] for spec in specs]))
  if first.loss is not None:
    replaced['loss'] = _loss_of_batch(specs, loss_weights, part_of_loss)
  if isinstance(first, tf1.estimator.tpu.TPUEstimatorSpec):
    # Not `_replace`: the spec keeps its host calls outside of the tuple.
    return type(first)(**{**first._asdict(), **replaced})
  return first._replace(**replaced)


def _loss_of_batch(specs: Sequence[Any],
                   weights: Sequence[batch_parts.Weight],
                   part_of_loss: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
  """Returns the loss of the batch; readers of a shard's loss get it."""
  losses = [spec.loss for spec in specs]
  readers = write_audit.readers_of(losses)
  parts = [part_of_loss(write_audit.unnamed(loss)) for loss in losses]
  loss = batch_parts.weighted_sum(
      [tf.reshape(part, []) for part in parts], weights)
  if not isinstance(specs[0], tf1.estimator.tpu.TPUEstimatorSpec):
    # In the root scope: the name of this tensor is a contract.
    with tf.name_scope(''):
      loss = tf.identity(loss, name='loss')
  write_audit.show_loss(losses, readers, loss)
  return loss


def check_specs(specs: Sequence[Any]) -> None:
  """Raises unless all shards returned the same kind of spec."""
  kinds = (tf.estimator.EstimatorSpec, tf1.estimator.tpu.TPUEstimatorSpec)
  for shard, spec in enumerate(specs):
    if not isinstance(spec, kinds):
      raise TypeError(
          '`model_fn` must return a `tf.estimator.EstimatorSpec`. Received '
          f'from shard {shard}: {spec!r}. Return one in every mode.')
  first = _shape_of(specs[0])
  for shard, spec in enumerate(specs[1:], start=1):
    for field, expected in first.items():
      found = _shape_of(spec)[field]
      if found != expected:
        raise ValueError(
            '`model_fn` must return the same kind of EstimatorSpec in every '
            f'shard. Received: `{field}` is {expected} in shard 0 and {found} '
            f'in shard {shard}. Return the same whatever the shard.')


def _shape_of(spec: Any) -> dict[str, Any]:
  """Returns the traits that shards must share; a TPU's spec has others."""
  shape = {
      'class': type(spec).__name__,
      'loss': 'None' if spec.loss is None else 'a tensor',
      'train_op': 'None' if spec.train_op is None else 'an op',
  }
  for field in ('predictions', 'eval_metric_ops', 'export_outputs'):
    value = getattr(spec, field, None)
    shape[field] = (sorted(value) if isinstance(value, Mapping)
                    else type(value).__name__)
  scaffold = getattr(spec, 'scaffold', None)
  shape['scaffold'] = [name for name in _OF_SCAFFOLDS
                       if getattr(scaffold, name, None) is not None]
  for field in ('training_hooks', 'training_chief_hooks', 'evaluation_hooks'):
    hooks = getattr(spec, field, None) or ()
    shape[field] = [type(hook).__name__ for hook in hooks]
  for field in ('eval_metrics', 'host_call', 'scaffold_fn'):
    given = getattr(spec, field, None) is not None
    shape[field] = 'given' if given else 'None'
  return {**shape, 'mode': spec.mode}


def concat_outputs(name: str, values: Sequence[Any]) -> Any:
  """Concatenates the values of the shards, leaf by leaf, along the batch.

  `values` has one nest of tensors `[batch, ...]` per shard, dense, sparse or
  ragged; `name` is for the error. Scalars are the first shard's. Sizes that are
  not static, such as the longest row of a shard, are padded to the largest. The
  padding is zero, as of `to_tensor` of a ragged tensor; for strings it is
  empty.
  """
  def concat_leaf(*leaves):
    leaves = [leaf if isinstance(leaf, batch_parts.COMPOSITES)
              else tf.convert_to_tensor(leaf) for leaf in leaves]
    is_common = len(leaves) == 1 or leaves[0].shape.rank == 0
    return leaves[0] if is_common else batch_parts.concat(leaves)

  try:
    return tf.nest.map_structure(concat_leaf, *values)
  except (TypeError, ValueError) as error:
    raise ValueError(
        f'`{name}` must be the same structure of tensors in every shard. '
        f'Received: {list(values)}. ({error})') from error
