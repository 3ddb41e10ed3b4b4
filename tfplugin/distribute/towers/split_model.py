# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Function that builds a model once, split over towers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.towers import split_graph
from tfplugin.ops import batch_parts

tf1 = tf.compat.v1


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
