# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Written by `make build-files`.
"""What the BUILD file at the top reads."""

VERSION = "0.1.0"

PACKAGE_SOURCES = [
    "//tfplugin:sources",
    "//tfplugin/_tf_internals:sources",
    "//tfplugin/bin:sources",
    "//tfplugin/contrib:sources",
    "//tfplugin/distribute:sources",
    "//tfplugin/distribute/clipping:sources",
    "//tfplugin/distribute/elastic:sources",
    "//tfplugin/distribute/shards:sources",
    "//tfplugin/distribute/staleness:sources",
    "//tfplugin/distribute/towers:sources",
    "//tfplugin/distribute/variables:sources",
    "//tfplugin/estimator:sources",
    "//tfplugin/hooks:sources",
    "//tfplugin/ops:sources",
    "//tfplugin/optimizers:sources",
    "//tfplugin/testing:sources",
]

SOURCES = [
    "//benchmarks:sources",
    "//examples:sources",
    "//tests:sources",
    "//tests/_tf_internals:sources",
    "//tests/bin:sources",
    "//tests/conformance:sources",
    "//tests/contrib:sources",
    "//tests/distribute:sources",
    "//tests/distribute/clipping:sources",
    "//tests/distribute/elastic:sources",
    "//tests/distribute/shards:sources",
    "//tests/distribute/staleness:sources",
    "//tests/distribute/towers:sources",
    "//tests/distribute/variables:sources",
    "//tests/distributed:sources",
    "//tests/estimator:sources",
    "//tests/examples:sources",
    "//tests/hooks:sources",
    "//tests/ops:sources",
    "//tests/optimizers:sources",
    "//tests/testing:sources",
    "//tfplugin:sources",
    "//tfplugin/_tf_internals:sources",
    "//tfplugin/bin:sources",
    "//tfplugin/contrib:sources",
    "//tfplugin/distribute:sources",
    "//tfplugin/distribute/clipping:sources",
    "//tfplugin/distribute/elastic:sources",
    "//tfplugin/distribute/shards:sources",
    "//tfplugin/distribute/staleness:sources",
    "//tfplugin/distribute/towers:sources",
    "//tfplugin/distribute/variables:sources",
    "//tfplugin/estimator:sources",
    "//tfplugin/hooks:sources",
    "//tfplugin/ops:sources",
    "//tfplugin/optimizers:sources",
    "//tfplugin/testing:sources",
]
