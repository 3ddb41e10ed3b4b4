# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Model_fns of public kinds have one device's numbers in towers and shards."""

import pytest
import tensorflow as tf

from tests.programs import programs
from tfplugin import estimator as estimator_lib
from tfplugin.testing import devices
from tfplugin.testing import one_device

pytestmark = pytest.mark.filterwarnings('ignore:.*deprecated')


def _name(model_fn):
  return model_fn.__name__


def _check(model_fn, decorator, **kwargs):
  one_device.assert_equals_one_device(
      model_fn, lambda: tf.data.Dataset.from_tensors(
          programs.MODEL_FNS[model_fn]).repeat(), decorator=decorator, **kwargs)


@pytest.mark.sampled(10)
@pytest.mark.parametrize('model_fn', programs.MODEL_FNS, ids=_name)
def test_towers_are_one_device(behavior, model_fn):
  _check(model_fn, estimator_lib.replicate_model_fn(
      devices=devices.make_logical_cpus(2), batch_norm='sync'), steps=3)


@pytest.mark.sampled(7)
@pytest.mark.parametrize('model_fn', programs.MODEL_FNS_OF_ROWS, ids=_name)
def test_shards_are_one_device(behavior, model_fn):
  _check(model_fn, estimator_lib.cross_shard(
      devices=devices.make_logical_cpus(2)), steps=3, modes=['train'])


@pytest.mark.parametrize('model_fn', programs.REFUSED_BY_SHARDS, ids=_name)
def test_shards_refuse_to_differ(behavior, model_fn):
  with pytest.raises(RuntimeError, match=programs.REFUSED_BY_SHARDS[model_fn]):
    _check(model_fn, estimator_lib.cross_shard(
        devices=devices.make_logical_cpus(2)), steps=1, modes=['train'])
