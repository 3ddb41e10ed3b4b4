# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""One model, built once, whose row-wise ops run on several devices."""
