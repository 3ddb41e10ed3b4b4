# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small tensors in few messages between a worker and parameter servers."""
