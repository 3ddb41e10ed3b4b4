# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sessions of a cluster: how they begin, and what ends a run of theirs."""
