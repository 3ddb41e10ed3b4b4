# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that tf.contrib's wrappers saved, and how they went on."""
