# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Properties of ops that TensorFlow does not publish, and copies of ops."""
