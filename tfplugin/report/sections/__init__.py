# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sections of the report, one for each panel: numbers, without drawing."""
