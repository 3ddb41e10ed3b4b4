# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Embeddings of a TPU are refused where TensorFlow has none."""

from __future__ import annotations

import pytest

from tfplugin.compat import tpu_embedding


@pytest.mark.parametrize('name', ['AdagradParameters', 'TPUEmbedding',
                                  'create_dummy_table_variables'])
def test_names_are_there_and_refuse_to_be_called(name):
  refused = getattr(tpu_embedding, name)
  assert getattr(tpu_embedding, name) is refused
  assert not isinstance(3, refused)
  with pytest.raises(NotImplementedError, match=f'dropped .{name}.') as error:
    refused(0.1, name='x')
  assert 'embedding_column' in str(error.value)


def test_attributes_of_python_are_not_made_up():
  assert not hasattr(tpu_embedding, '__path__')
