# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Updates of variables: interception, checks for finite values, audits."""
