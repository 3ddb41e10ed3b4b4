# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model_fn that is built once, and whose row-wise ops run in towers."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf
from absl import logging

from tfplugin import _tf_internals
from tfplugin.distribute.towers import split_graph
from tfplugin.estimator import batch_sharding
from tfplugin.ops import weighted_sum

tf1 = tf.compat.v1

_VARIABLE_DEVICE = '/device:CPU:0'
# By `batch_norm`, what the moments of a tower with some rows count; None: towers
# have no moments of their own.
_WEIGHTS_OF_MOMENTS = {
    'mean': weighted_sum.row_shares,
    # The first tower has rows whenever any tower has.
    'first': lambda rows: [1.0] + [0.0] * (len(rows) - 1),
    'sync': None,
}


def build(model_fn: Callable[[], Any], features: Any, labels: Any,
          devices: Sequence[str], broadcast: Collection[str] = (),
          batch_norm: str = 'mean') -> Any:
  """Returns the EstimatorSpec of `model_fn`, computed on `devices`.

  Args:
    model_fn: Builds the model for the whole batch.
    features: The features that it uses.
    labels: Its labels.
    devices: See `tfplugin.replicate_model_fn`.
    broadcast: Likewise.
    batch_norm: Likewise.
  """
  batch = batch_sharding.rows_of_batch(features, labels, broadcast)
  with tf1.device(devices[0]), _variables_on_cpu(devices):
    if len(devices) == 1:
      return _with_name(model_fn())
    split = split_graph.SplitGraph(
        batch.dense, batch.composites, batch.num_rows,
        lambda: batch.divided(len(devices)), devices,
        _WEIGHTS_OF_MOMENTS[batch_norm])
    graph = tf1.get_default_graph()
    with _tf_internals.gradients_through(
        lambda: tf1.get_default_graph() is graph, split.gradients), (
            _tf_internals.batch_norm_noted(
                functools.partial(_noting, split.note_batch_norm))):
      spec = model_fn()
    split.update()
    spec = _with_name(_of_all_rows(spec, split))
  _warn_of_unsplit(split)
  return spec


@contextlib.contextmanager
def _noting(note: Callable[[Sequence[tf.Operation]], None]) -> Iterator[None]:
  graph = tf1.get_default_graph()
  before = len(graph.get_operations())
  yield
  note(graph.get_operations()[before:])


def _of_all_rows(spec: Any, split: split_graph.SplitGraph) -> Any:
  """Returns `spec` with the rows of all towers in its outputs."""
  if not hasattr(spec, '_replace'):
    raise TypeError(
        '`model_fn` must return a `tf.estimator.EstimatorSpec`. Received: '
        f'{spec!r}. Return one in every mode.')
  whole = functools.partial(tf.nest.map_structure, split.whole)
  replaced = {'predictions': whole(spec.predictions)}
  if spec.export_outputs:
    replaced['export_outputs'] = {
        key: _export_output(output, split.whole)
        for key, output in spec.export_outputs.items()}
  if getattr(spec, 'eval_metric_ops', None):
    replaced['eval_metric_ops'] = {
        key: metric if isinstance(metric, tf.keras.metrics.Metric) else
        whole(metric) for key, metric in spec.eval_metric_ops.items()}
  return spec._replace(**replaced)


def _export_output(output: Any, whole: Callable) -> Any:
  """Returns an ExportOutput with the rows of all towers."""
  export = tf.estimator.export
  if isinstance(output, export.ClassificationOutput):
    return export.ClassificationOutput(
        whole(output.scores), whole(output.classes))
  if isinstance(output, export.RegressionOutput):
    return export.RegressionOutput(whole(output.value))
  return export.PredictOutput({
      key: whole(value) for key, value in output.outputs.items()})


def _with_name(spec: Any) -> Any:
  """Returns `spec` with a loss that is the tensor `loss`."""
  if getattr(spec, 'loss', None) is None or spec.loss.name == 'loss:0':
    return spec
  with tf.name_scope(''):
    return spec._replace(loss=tf.identity(spec.loss, name='loss'))


def _warn_of_unsplit(split: split_graph.SplitGraph) -> None:
  names = list(split.unsplit)
  if names:
    logging.warning(
        'Computed once, on the first device, for the rows of all towers: what '
        'follows from ops that are not known to compute each row by itself. '
        'The numbers are right. %s such ops use a variable, the first ones '
        'are: %s.', len(names), ', '.join(names[:3]))


@contextlib.contextmanager
def _variables_on_cpu(devices: Sequence[str]) -> Iterator[None]:
  """Makes variables on the CPU, or on the device where there is one only."""
  if len(devices) == 1:
    yield
    return

  def create(next_creator, **kwargs):
    if kwargs.get('colocate_with') is not None:
      return next_creator(**kwargs)
    with tf1.device(_VARIABLE_DEVICE):
      return next_creator(**kwargs)

  with tf.variable_creator_scope(create):
    yield
