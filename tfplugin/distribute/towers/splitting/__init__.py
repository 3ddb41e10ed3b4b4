# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Model that is built once, and whose row-wise ops run on several devices."""
