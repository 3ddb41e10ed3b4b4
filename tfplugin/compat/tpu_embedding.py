# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Stands for the TPU embeddings of Estimator, which TensorFlow has no more.

Estimator imports them whether or not a program uses them. Every name is here,
and refuses to be called.
"""

from __future__ import annotations

import functools

import tensorflow as tf


class _Refused:
  """What raises when it is made, or called; Estimator tests for instances."""

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
