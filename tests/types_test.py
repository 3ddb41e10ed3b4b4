# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The types of public arguments tell a type checker what is wrong."""

import typing

import pytest
import tensorflow as tf

import tfplugin
from tfplugin import types

tf1 = tf.compat.v1
_METHODS = ('apply_gradients', 'compute_gradients')


@pytest.mark.parametrize('wrapper', [
    tfplugin.CrossShardOptimizer, tfplugin.DropStaleGradientOptimizer,
    tfplugin.ElasticAverageOptimizer, tfplugin.TowerOptimizer,
    tfplugin.VariableClippingOptimizer])
def test_a_text_is_no_optimizer(wrapper):
  hints = typing.get_type_hints(wrapper.__init__)
  hint = hints.get('opt') or hints['optimizer_or_optimizer_fn']
  assert types.Optimizer in (hint, *typing.get_args(hint))
  assert not [name for name in _METHODS if hasattr('adam', name)]


@pytest.mark.parametrize('optimizer', [
    tf1.train.AdamOptimizer(0.1), tf1.train.GradientDescentOptimizer(0.1)])
def test_optimizers_have_the_methods_of_the_type(optimizer):
  assert sorted(name for name in vars(types.Optimizer)
                if not name.startswith('_')) == sorted(_METHODS)
  assert all(callable(getattr(optimizer, name)) for name in _METHODS)
