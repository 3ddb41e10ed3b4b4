# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Preparation for loading Estimator beside a newer TensorFlow."""

from __future__ import annotations

from tensorflow.python.util import tf_export

from tfplugin.compat import keras_choice

_API_NAME = 'estimator'


def prepare() -> None:
  """Chooses Keras and adds the entries that Estimator expects; may be repeated.

  Raises ImportError if Estimator cannot run with the Keras of this process.
  """
  keras_choice.choose()
  _add_api_name()


def _add_api_name() -> None:
  """Adds the rows that Estimator's classes use to declare their public names.

  The rows belong to TensorFlow's own tables, and no function extends these.
  """
  if hasattr(tf_export, 'ESTIMATOR_API_NAME'):
    return
  tf_export.ESTIMATOR_API_NAME = _API_NAME
  tf_export.SUBPACKAGE_NAMESPACES.append(_API_NAME)
  row = type(tf_export.API_ATTRS[tf_export.TENSORFLOW_API_NAME])
  for table, suffix in ((tf_export.API_ATTRS, ''),
                        (tf_export.API_ATTRS_V1, '_v1')):
    table[_API_NAME] = row(f'_{_API_NAME}_api_names{suffix}',
                           f'_{_API_NAME}_api_constants{suffix}')
