# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Readers of the files of a run, and of the curves and sums in them."""
