# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of who may start, and for how long it may wait."""

import math

import numpy as np
import pytest

from tfplugin.distribute.elastic import elastic_start


@pytest.mark.parametrize('task_index', (0, 1, np.int64(1)))
@pytest.mark.parametrize('seconds', (.5, 600))
def test_arguments_that_are_fine(task_index, seconds):
  elastic_start.check_start(task_index, 2, seconds)


@pytest.mark.parametrize('task_index, seconds, error, words', (
    ('0', 1.0, TypeError, '`task_index` must be an integer'),
    (0.0, 1.0, TypeError, '`task_index` must be an integer'),
    (False, 1.0, TypeError, '`task_index` must be an integer'),
    (2, 1.0, ValueError, r'in \[0, `num_worker`\), here \[0, 2\)'),
    (-1, 1.0, ValueError, r'in \[0, `num_worker`\), here \[0, 2\)'),
    (0, 0, ValueError, '`time_limit_secs` must'),
    (0, math.inf, ValueError, '`time_limit_secs` must')))
def test_others_are_refused(task_index, seconds, error, words):
  with pytest.raises(error, match=words):
    elastic_start.check_start(task_index, 2, seconds)
