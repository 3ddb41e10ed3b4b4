# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The version of tfplugin and the TensorFlow range that it supports."""

__version__ = '1.0.0'

# A TensorFlow version v is supported when MIN_TENSORFLOW <= v < MAX_TENSORFLOW.
MIN_TENSORFLOW = '2.15.0'
MAX_TENSORFLOW = '2.22.0'
