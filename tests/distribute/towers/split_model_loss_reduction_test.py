# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the check of an argument."""

import pytest
import tensorflow as tf

from tfplugin.distribute.towers import split_model

_Reduction = tf.compat.v1.losses.Reduction


@pytest.mark.parametrize('reduction', (_Reduction.NONE, 'mean', ''))
def test_reductions_that_leave_no_scalar_are_refused(reduction):
  with pytest.raises(ValueError, match='`loss_reduction` must be one of'):
    split_model.check_loss_reduction(reduction)
