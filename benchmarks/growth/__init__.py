# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""How cost grows with workers, parameters, rows, variables and towers."""
