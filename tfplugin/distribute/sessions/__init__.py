# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sessions of a cluster: their start, and the end of refused runs."""
