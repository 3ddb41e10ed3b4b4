# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks, saves and restores of checkpoints that survive faults."""
