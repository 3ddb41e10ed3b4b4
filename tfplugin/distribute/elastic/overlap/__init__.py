# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exchanges that run concurrently with the steps that follow them."""
