# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The numbers of the report, a section for each panel; no file here draws."""
