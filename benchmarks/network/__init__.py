# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Workers and parameter servers on links that are as slow as real ones."""
