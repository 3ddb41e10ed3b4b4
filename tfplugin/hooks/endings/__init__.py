# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""How tasks end, and how they learn that others have."""
