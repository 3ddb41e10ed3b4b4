# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Private parts of Estimators: sessions, inputs, evaluators."""
