# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for tfplugin.contrib.absent_names and the package that uses it."""

import pytest

import tfplugin
from tfplugin import contrib
from tfplugin.contrib import absent_names


def test_one_import_line_replaces_the_old_one():
  # The names as programs of TensorFlow 1.15 spell them.
  assert issubclass(contrib.opt.ElasticAverageOptimizer,
                    contrib.opt.VariableClippingOptimizer.__mro__[1])
  assert contrib.tpu.CrossShardOptimizer is tfplugin.CrossShardOptimizer
  assert contrib.estimator.replicate_model_fn is tfplugin.replicate_model_fn


def test_other_parts_of_contrib_are_refused():
  with pytest.raises(AttributeError, match=(
      r'no .contrib\.layers.\. It holds contrib\.estimator, contrib\.opt, '
      r'contrib\.tpu.*TensorFlow 1\.15')):
    contrib.layers  # noqa: B018 (the access raises)


def test_import_of_another_name_is_an_import_error():
  with pytest.raises(ImportError, match='AdamWOptimizer'):
    from tfplugin.contrib.opt import AdamWOptimizer  # noqa: F401 (raises)


def test_hasattr_and_dir_work():
  assert not hasattr(contrib, 'seq2seq')
  assert 'opt' in dir(contrib)


def test_names_are_listed_as_users_write_them():
  refuse = absent_names.refuse('contrib.a', ['B', 'C'])
  with pytest.raises(AttributeError, match=r'contrib\.a\.B, contrib\.a\.C\.'):
    refuse('D')
