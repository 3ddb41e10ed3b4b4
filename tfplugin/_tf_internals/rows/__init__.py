# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow does not tell of its ops, and copies of them."""
