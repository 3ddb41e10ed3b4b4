# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reduction of the specs that a model_fn returned in several shards."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin.distribute.shards.writes import write_audit
from tfplugin.distribute.towers import split_model
from tfplugin.ops import batch_parts

tf1 = tf.compat.v1

# The arguments of a Scaffold that a user may give.
_OF_SCAFFOLDS = ('init_op', 'init_fn', 'ready_op', 'ready_for_local_init_op',
                 'local_init_op', 'summary_op', 'saver')


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
  join, first, replaced = concat_fn or concat, specs[0], {}
  if first.predictions is not None:
    replaced['predictions'] = join(
        'predictions', [spec.predictions for spec in specs])
  if mode == tf.estimator.ModeKeys.PREDICT and first.export_outputs:
    replaced['export_outputs'] = {
        key: split_model.export_output(
            key, [spec.export_outputs[key] for spec in specs], concat)
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


def concat(name: str, values: Sequence[Any]) -> Any:
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
