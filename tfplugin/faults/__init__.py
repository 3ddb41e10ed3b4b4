# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Faults that a run is given on purpose, to see that it survives them."""
