# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that survive: which is whole, what is saved, what is restored."""
