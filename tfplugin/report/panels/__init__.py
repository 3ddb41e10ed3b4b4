# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The panels of the page, one in each file: they draw what a section holds."""
