# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Written by `make build-files`.
"""What the BUILD file at the top reads."""

VERSION = "0.1.0"

PACKAGE_SOURCES = [
    "//tfplugin:sources",
    "//tfplugin/bin:sources",
    "//tfplugin/distribute:sources",
    "//tfplugin/estimator:sources",
    "//tfplugin/hooks:sources",
    "//tfplugin/ops:sources",
    "//tfplugin/optimizers:sources",
    "//tfplugin/testing:sources",
]

SOURCES = [
    "//tests:sources",
    "//tests/bin:sources",
    "//tests/optimizers:sources",
    "//tfplugin:sources",
    "//tfplugin/bin:sources",
    "//tfplugin/distribute:sources",
    "//tfplugin/estimator:sources",
    "//tfplugin/hooks:sources",
    "//tfplugin/ops:sources",
    "//tfplugin/optimizers:sources",
    "//tfplugin/testing:sources",
]
