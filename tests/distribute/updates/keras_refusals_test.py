# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Refusals tell the optimizers of Keras by the modules of their updates."""

from __future__ import annotations

import contextlib
import types

import keras
import pytest

from tfplugin.distribute.updates import keras_refusals

_STRATEGY = types.SimpleNamespace(described_as='OurStrategy')


def _update(module):
  def fn():
    pass

  fn.__module__ = module
  return fn


@pytest.mark.parametrize('refuse, words', [
    (lambda fn: keras_refusals.refuse_keras_update(fn, 'it sums', ', or else'),
     'it sums.*Keras optimizer of `{}`.*, or else'),
    (lambda fn: keras_refusals.refuse_keras_step_count(fn, _STRATEGY),
     'OurStrategy decides when the global step advances.*of `{}`')])
@pytest.mark.parametrize('module', ['keras.src.x', 'tf_keras.src.x'])
def test_every_keras_is_refused(refuse, words, module):
  with pytest.raises(TypeError, match=words.format(module)):
    refuse(_update(module))
  refuse(_update('tensorflow.python.training.optimizer'))


def test_keras_3_alone_is_refused():
  keras_refusals.refuse_keras_3_update(
      _update('tf_keras.src.x'), _STRATEGY, 'it sums')
  is_keras_2 = keras.__version__.startswith('2.')
  with contextlib.nullcontext() if is_keras_2 else pytest.raises(
      TypeError, match='Keras 3 in OurStrategy: it sums.*`keras.src.x`'):
    keras_refusals.refuse_keras_3_update(
        _update('keras.src.x'), _STRATEGY, 'it sums')
