# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The file of contrib that programs import a function from."""

import tfplugin
from tfplugin.contrib import estimator_files


def test_the_file_has_the_function():
  assert estimator_files.replicate_model_fn.replicate_model_fn is (
      tfplugin.replicate_model_fn)
