# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the launcher starts, and where: each task's settings and its place."""
