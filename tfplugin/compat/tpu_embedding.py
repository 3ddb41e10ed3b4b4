# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replacement of the TPU embeddings of Estimator.

TensorFlow has removed them, but Estimator imports them in every program. Each
name exists here and raises an error when it is called.
"""

from __future__ import annotations

import functools

import tensorflow as tf


class _Refused:
  """A class whose instances cannot be made; Estimator tests for instances."""

  def __init__(self, *args, **kwargs):
    del args, kwargs
    raise NotImplementedError(
        'TPUEstimator has no TPU embeddings beside TensorFlow '
        f'{tf.__version__}, which dropped `{type(self).__name__}`. Leave out '
        '`embedding_config_spec` and use `tf.feature_column.embedding_column`, '
        'or install TensorFlow 2.15.')


@functools.cache
def __getattr__(name: str):
  if name.startswith('__'):
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  return type(name, (_Refused,), {})
