# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names of `tf.contrib.data`, and their places in TensorFlow today."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfplugin.contrib import old_names

_DATASET = 'tf.compat.v1.data.Dataset'


def batch_and_drop_remainder(
    batch_size: int | tf.Tensor) -> Callable[[Any], Any]:
  """Returns a function for `Dataset.apply` that makes whole batches only.

  Args:
    batch_size: Rows of a batch; rows that do not fill the last one are dropped.

  Example:
    >>> import tensorflow as tf
    >>> from tfplugin.contrib import data
    >>> rows = tf.data.Dataset.range(5).apply(data.batch_and_drop_remainder(2))
    >>> [batch.tolist() for batch in rows.as_numpy_iterator()]
    [[0, 1], [2, 3]]
  """
  return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: int | tf.Tensor, padded_shapes: Any,
    padding_values: Any = None) -> Callable[[Any], Any]:
  """Returns a function for `Dataset.apply`: whole batches of padded rows.

  Args:
    batch_size: See `batch_and_drop_remainder`.
    padded_shapes: See `Dataset.padded_batch`.
    padding_values: See `Dataset.padded_batch`.
  """
  return lambda dataset: dataset.padded_batch(
      batch_size, padded_shapes, padding_values, drop_remainder=True)


OLD = old_names.OldNames(
    'contrib.data',
    ours=(batch_and_drop_remainder, padded_batch_and_drop_remainder),
    moved=old_names.same('tf.compat.v1.data.experimental', '''
        AUTOTUNE CheckpointInputPipelineHook Counter CsvDataset Optional
        RandomDataset Reducer SqlDataset TFRecordWriter
        bucket_by_sequence_length choose_from_datasets copy_to_device
        dense_to_sparse_batch enumerate_dataset get_next_as_optional
        get_single_element group_by_reducer group_by_window ignore_errors
        make_batched_features_dataset make_csv_dataset
        make_saveable_from_iterator map_and_batch parallel_interleave
        parse_example_dataset prefetch_to_device rejection_resample
        sample_from_datasets scan shuffle_and_repeat unbatch unique'''),
    notes={'CheckpointInputPipelineHook':
               'ended with TensorFlow 2.15: save the result of '
               '`make_saveable_from_iterator`'},
    gone={
        'LMDBDataset': 'the package `tensorflow-io`, or records of your own in '
                       '`tf.compat.v1.data.TFRecordDataset`',
        'assert_element_shape': f'`{_DATASET}.map` with `tf.ensure_shape`',
        'read_batch_features':
            '`tf.compat.v1.data.experimental.make_batched_features_dataset`',
        'reduce_dataset': f'`{_DATASET}.reduce`',
        'sliding_window_batch': f'`{_DATASET}.window`, then '
                                f'`{_DATASET}.flat_map` that batches each',
        'sloppy_interleave':
            '`tf.compat.v1.data.experimental.parallel_interleave` with '
            '`sloppy=True`',
    })

__all__ = OLD.held
__dir__ = OLD.dir
__getattr__ = OLD.get
