# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rules of the wrappers as pure functions, each beside its equation."""
