# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The file of `contrib.estimator.python.estimator` that programs import."""

from tfplugin.contrib import estimator as replicate_model_fn

__all__ = ('replicate_model_fn',)
