# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ends of tasks, and checks by which other tasks notice them."""
