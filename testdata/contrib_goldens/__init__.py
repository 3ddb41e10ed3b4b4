# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trajectories of tf.contrib's wrappers and what it takes to record them."""
