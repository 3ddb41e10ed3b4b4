# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Model of several towers, built once, and its batch, joined from theirs."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.towers import split_graph
from tfplugin.ops import batch_parts

tf1 = tf.compat.v1

_REMEDY = 'Repeat a value of the whole batch for each row.'


def join(batches: Sequence[Any]) -> batch_parts.DividedBatch | None:
  """Returns the batch of all towers; None if no tower has separate rows.

  Tensors that are the same in all towers stay as they are.
  """
  leaves = list(zip(*map(tf.nest.flatten, batches)))
  sizes = list(map(_static_size, zip(*(
      own for own in leaves if any(leaf is not own[0] for leaf in own)))))
  joined, dense, parts, composites, split = [], [], [], [], []
  with tf.name_scope('tower_batches'):
    for own in leaves:
      if all(leaf is own[0] for leaf in own[1:]):
        joined.append(own[0])
        continue
      own = [leaf if isinstance(leaf, batch_parts.COMPOSITES) else
             _checked(tf.convert_to_tensor(leaf), size)
             for leaf, size in zip(own, sizes)]
      if own[0].shape.rank == 0:
        joined.append(_first_scalar(own))
        continue
      split.append(own)
      if isinstance(own[0], batch_parts.COMPOSITES):
        joined.append(batch_parts.concat(own))
        composites.append(joined[-1])
      else:
        own = batch_parts.fill_up(own)
        joined.append(tf.concat(own, 0))
        if own[0].shape.rank is not None:
          dense.append(joined[-1])
          parts.append([_made_of(joined[-1], part) for part in own])
    if not split:
      return None
    rows = [_num_rows(own) for own in zip(*split)]
  is_static = all(isinstance(count, int) for count in rows)
  return batch_parts.DividedBatch(
      tf.nest.pack_sequence_as(batches[0], joined), dense, composites,
      sum(rows) if is_static else None, functools.partial(_bounds, rows), parts)


def _bounds(rows: Sequence[batch_parts.Rows]) -> batch_parts.Bounds:
  return [0, *itertools.accumulate(rows[:-1])], rows, ()


def _num_rows(leaves: Sequence[Any]) -> batch_parts.Rows:
  """Returns the number of rows of a tower, checked where it is static."""
  rows = batch_parts.static_rows(leaves, _REMEDY)
  return batch_parts.num_rows(leaves[0]) if rows is None else rows


def _static_size(leaves: Sequence[Any]) -> int | None:
  """Returns the static first dimension of a tower's tensors, if it is one."""
  found = {tf.compat.dimension_value(leaf.shape[0]) for leaf in leaves
           if isinstance(leaf, tf.Tensor) and leaf.shape.rank} - {None}
  return found.pop() if len(found) == 1 else None


def _checked(tensor: tf.Tensor, size: int | None) -> tf.Tensor:
  """Returns a `tensor` that a session checks to have `size` rows, if static."""
  if size is None or not tensor.shape.rank or tf.compat.dimension_value(
      tensor.shape[0]) is not None:
    return tensor
  check = tf1.debugging.assert_equal(
      tf.shape(tensor)[0], size, message='Every tensor of a batch must have '
      f'the same first dimension. {_REMEDY}')
  with tf.control_dependencies([check]):
    return tf.identity(tensor)


def _made_of(batch: tf.Tensor, part: tf.Tensor) -> tf.Tensor:
  """Returns `part` as a tensor that Keras finds from `batch`."""
  sizes = tf.raw_ops.Shape(input=batch)[1:]
  made = tf.reshape(part, tf.concat([tf.shape(part)[:1], sizes], 0))
  made.set_shape(part.shape)
  return made


def _first_scalar(scalars: Sequence[tf.Tensor]) -> tf.Tensor:
  values = [tf.get_static_value(scalar) for scalar in scalars]
  if None in values or len({value.item() for value in values}) > 1:
    tf1.logging.warning(
        'Each of %s towers has a value of the scalar %s, and only the first '
        'one is used. Give it the dimension of the batch to use all.',
        len(scalars), scalars[0].name)
  return scalars[0]


def build(fn: Callable[[], Any], batch: batch_parts.DividedBatch,
          devices: Sequence[str], batch_norm: str = 'mean') -> Any:
  """Returns the result of `fn`, with the rows of all towers in it.

  `fn` builds a model for the whole `batch` in the default graph. Gradients that
  are taken in the graph afterwards are split, too.
  """
  split = split_graph.SplitGraph(batch, devices, batch_norm)
  _tf_internals.gradients_of_graph_through(
      tf1.get_default_graph(), split.gradients)
  with _tf_internals.batch_norm_noted(split.note_batch_norm):
    result = fn()
  split.update()
  _warn_of_unsplit(split)
  whole = functools.partial(
      tf.nest.map_structure, split.whole, expand_composites=True)
  return (_spec_of_all_rows(result, whole)
          if hasattr(result, 'export_outputs') else whole(result))


def _spec_of_all_rows(spec: Any, whole: Callable[[Any], Any]) -> Any:
  """Returns an EstimatorSpec with the rows of all towers in its outputs."""
  replaced = {'predictions': whole(spec.predictions)}
  if spec.export_outputs:
    replaced['export_outputs'] = {
        key: export_output(key, [output], lambda _, values: whole(values[0]))
        for key, output in spec.export_outputs.items()}
  if getattr(spec, 'eval_metric_ops', None):
    replaced['eval_metric_ops'] = {
        key: metric if isinstance(metric, tf.keras.metrics.Metric) else
        whole(metric) for key, metric in spec.eval_metric_ops.items()}
  return spec._replace(**replaced)


def export_output(key: str, outputs: Sequence[Any],
                  join: Callable[[str, Sequence[Any]], Any]) -> Any:
  """Returns an ExportOutput with the joined tensors of several.

  `join` gets the name of a field, and its values. `key` is the output's name.
  """
  export = tf.estimator.export
  for kind, fields in ((export.ClassificationOutput, ('scores', 'classes')),
                       (export.RegressionOutput, ('value',)),
                       (export.PredictOutput, ('outputs',))):
    if isinstance(outputs[0], kind):
      values = ([getattr(output, field) for output in outputs]
                for field in fields)
      return kind(*(None if own[0] is None else join(f'{key}.{field}', own)
                    for field, own in zip(fields, values)))
  raise ValueError(
      '`export_outputs` must hold ClassificationOutput, RegressionOutput or '
      f'PredictOutput. Received: {outputs[0]!r} under {key!r}. Use one of '
      '`tf.estimator.export`.')


def _warn_of_unsplit(split: split_graph.SplitGraph) -> None:
  names = list(split.unsplit)
  if names:
    tf1.logging.warning(
        'Ops that are not known to compute each row by itself, and ops that '
        'depend on them, run once, on the first device, for the rows of all '
        'towers. The numbers are right. %s of them use a variable, the first '
        'ones are: %s.', len(names), ', '.join(names[:3]))


def check_loss_reduction(loss_reduction: str | None) -> None:
  """Raises unless `loss_reduction` is one that gives a scalar loss.

  It is an argument of tf.contrib, and changes no number here.
  """
  reduction = tf1.losses.Reduction
  known = {key for key in reduction.all() if key != reduction.NONE}
  if loss_reduction is not None and loss_reduction not in known:
    raise ValueError(
        f'`loss_reduction` must be one of {sorted(known)}. '
        f'Received: {loss_reduction!r}. Leave it out: the loss of the model_fn '
        'is a scalar, and no number depends on this argument.')
