# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decorators for an Estimator's model_fn."""
from tfplugin.estimator.replicate import replicate_model_fn

__all__ = (
    'replicate_model_fn',
)
