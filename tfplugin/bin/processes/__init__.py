# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The processes of a cluster on this machine, from their start to their end."""
