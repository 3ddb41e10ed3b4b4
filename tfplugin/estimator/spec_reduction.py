# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reduction of the specs that a model_fn returned in several towers."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from tfplugin import _tf_internals
from tfplugin.ops import row_padding
from tfplugin.ops import weighted_sum

tf1 = tf.compat.v1

# The arguments of a Scaffold that a user may give.
_OF_SCAFFOLDS = ('init_op', 'init_fn', 'ready_op', 'ready_for_local_init_op',
                 'local_init_op', 'summary_op', 'saver')


def reduce_specs(mode: str, specs: Sequence[Any],
                 loss_weights: Sequence[weighted_sum.Weight]) -> Any:
  """Returns the spec of the whole batch; raises if a tower's spec differs.

  The loss is the sum of the towers' losses, weighted by `loss_weights`.
  Predictions and export outputs are concatenated in the order of the towers.
  All other fields (train_op, metrics, hooks, scaffold) come from the first
  tower: gradients, assignments to variables and batch statistics of all towers
  have been combined before.
  """
  check_specs(specs)
  replaced = {}
  if specs[0].predictions is not None:
    replaced['predictions'] = concat(
        'predictions', [spec.predictions for spec in specs])
  if mode == tf.estimator.ModeKeys.PREDICT and specs[0].export_outputs:
    replaced['export_outputs'] = {
        key: concat_export_output(
            key, [spec.export_outputs[key] for spec in specs])
        for key in specs[0].export_outputs}
  if specs[0].loss is not None:
    loss = weighted_sum.weighted_sum(
        [unnamed(spec.loss) for spec in specs], loss_weights)
    # In the root scope: the name of this tensor is a contract.
    with tf.name_scope(''):
      replaced['loss'] = tf.identity(loss, name='loss')
  return specs[0]._replace(**replaced)


def check_specs(specs: Sequence[Any]) -> None:
  """Raises unless all towers returned the same kind of spec."""
  kinds = (tf.estimator.EstimatorSpec, tf1.estimator.tpu.TPUEstimatorSpec)
  for tower, spec in enumerate(specs):
    if not isinstance(spec, kinds):
      raise TypeError(
          '`model_fn` must return a `tf.estimator.EstimatorSpec`. Received '
          f'from tower {tower}: {spec!r}. Return one in every mode.')
  first = _shape_of(specs[0])
  for tower, spec in enumerate(specs[1:], start=1):
    for field, expected in first.items():
      found = _shape_of(spec)[field]
      if found != expected:
        raise ValueError(
            '`model_fn` must return the same kind of EstimatorSpec in every '
            f'tower. Received: `{field}` is {expected} in tower 0 and {found} '
            f'in tower {tower}. Return the same whatever the tower.')


def _shape_of(spec: Any) -> dict[str, Any]:
  """Returns the traits that towers must share; a TPU's spec has others."""
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
  """Concatenates the values of the towers, leaf by leaf, along the batch.

  `values` has one nest of tensors `[batch, ...]` per tower, dense, sparse or
  ragged; `name` is for the error. Scalars are the first tower's. Sizes that are
  not static, such as the longest row of a tower, are padded to the largest. The
  padding is zero, as of `to_tensor` of a ragged tensor; for strings it is
  empty.
  """
  def concat_leaf(*leaves):
    try:
      leaves = [leaf if isinstance(leaf, (tf.SparseTensor, tf.RaggedTensor))
                else tf.convert_to_tensor(leaf) for leaf in leaves]
      return _concat_leaf(leaves)
    except (TypeError, ValueError) as error:
      raise _mismatch(name, values, error) from error

  try:
    for others in values[1:]:
      tf.nest.assert_same_structure(values[0], others)
  except (TypeError, ValueError) as error:
    raise _mismatch(name, values, error) from error
  return tf.nest.map_structure(concat_leaf, *values)


def _mismatch(name: str, values: Sequence[Any],
              error: Exception) -> ValueError:
  return ValueError(
      f'`{name}` must be the same structure of tensors in every tower. '
      f'Received: {list(values)}. ({error})')


def _concat_leaf(leaves: Sequence[Any]) -> Any:
  if isinstance(leaves[0], tf.SparseTensor):
    return tf.sparse.concat(0, list(leaves), expand_nonconcat_dims=True)
  if leaves[0].shape.rank == 0 or len(leaves) == 1:
    return leaves[0]
  if not isinstance(leaves[0], tf.RaggedTensor):
    leaves = row_padding.fill_up(leaves)
  return tf.concat(leaves, axis=0)


def concat_export_output(key: str, outputs: Sequence[Any]) -> Any:
  """Concatenates the export outputs of the towers, classes included.

  `key` is the name of the output, for the error.
  """
  export = tf.estimator.export
  if isinstance(outputs[0], export.ClassificationOutput):
    return export.ClassificationOutput(**{
        field: concat(f'{key}.{field}', [getattr(o, field) for o in outputs])
        for field in ('scores', 'classes')
        if getattr(outputs[0], field) is not None})
  if isinstance(outputs[0], export.RegressionOutput):
    return export.RegressionOutput(
        concat(f'{key}.value', [o.value for o in outputs]))
  if isinstance(outputs[0], export.PredictOutput):
    return export.PredictOutput(
        concat(f'{key}.outputs', [o.outputs for o in outputs]))
  raise ValueError(
      '`export_outputs` must hold ClassificationOutput, RegressionOutput or '
      f'PredictOutput. Received: {outputs[0]!r} under {key!r}. Use one of '
      '`tf.estimator.export`.')


def show_loss(losses: Sequence[tf.Tensor], total: tf.Tensor) -> None:
  """Makes the ops that read a tower's loss read the loss of the batch.

  A metric of the loss, or its summary, then has one value per batch. `total` is
  made from `losses`; the ops on the way to it are left alone.
  """
  pending, behind = [total.op], set()
  while pending:
    op = pending.pop()
    if op not in behind:
      behind.add(op)
      pending += [*(tensor.op for tensor in op.inputs), *op.control_inputs]
  if losses[0].op.name == 'loss' and not _tf_internals.names_tensor(
      losses[0].op):
    logging.warning(
        'The tensor `loss` of the model_fn is that of the first of %s towers; '
        'the loss of the batch is `%s`. Name it by `tf.identity(loss, '
        "name='loss')`, which is that of the batch.", len(losses), total.name)
  losses = [unnamed(loss) for loss in losses if isinstance(loss, tf.Tensor)]
  for loss in losses:
    shown = None
    for op in set(loss.consumers()) - behind:
      shown = tf.cast(total, loss.dtype) if shown is None else shown
      for index, tensor in enumerate(op.inputs):
        if tensor is loss:
          _tf_internals.redirect_input(op, index, shown)


def unnamed(loss: tf.Tensor) -> tf.Tensor:
  """Returns the tensor behind identity ops that only name a loss.

  An identity with a name can be redirected to another tensor; a name cannot.
  """
  while isinstance(loss, tf.Tensor) and _tf_internals.names_tensor(loss.op):
    loss = loss.op.inputs[0]
  return loss
