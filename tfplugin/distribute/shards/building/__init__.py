# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shards that train synchronously: gradients are reduced over all of them."""
