# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Panels of the page, one in each file, which draw the sections."""
