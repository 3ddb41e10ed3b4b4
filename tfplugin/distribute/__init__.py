# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where and when a rule runs: contexts, placement, tf.distribute strategies."""
