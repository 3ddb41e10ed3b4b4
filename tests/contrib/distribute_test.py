# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for tfplugin.contrib.distribute.

old_names_test.py walks all of its names.
"""

import pytest
import tensorflow as tf

from tfplugin.contrib import distribute


def test_old_names_of_the_context_are_the_new_ones():
  assert not distribute.has_distribution_strategy()
  with distribute.OneDeviceStrategy('/cpu:0').scope():
    assert distribute.has_distribution_strategy()
    now = distribute.get_distribution_strategy()
    assert now is tf.distribute.get_strategy()


@pytest.mark.parametrize('name, argument', [
    ('CollectiveAllReduceStrategy', 'num_gpus_per_worker'),
    ('MirroredStrategy', 'num_gpus'),
    ('ParameterServerStrategy', 'num_gpus_per_worker')])
def test_an_argument_that_is_gone_is_refused(name, argument):
  with pytest.raises(TypeError, match=argument):
    getattr(distribute, name)(**{argument: 2})
