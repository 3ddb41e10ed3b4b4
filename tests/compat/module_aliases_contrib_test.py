# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The old names are of modules that exist; install_test.py uses them."""
# BUILD deps: //tfplugin:everything

from __future__ import annotations

import importlib
import sys

import pytest

from tfplugin.compat import module_aliases


@pytest.mark.parametrize(
    'real', sorted({*module_aliases.CONTRIB_ALIASES.values()}))
def test_aliases_are_of_modules_that_exist(real):
  assert importlib.import_module(real) is sys.modules[real]


def test_every_file_has_its_packages():
  for alias in module_aliases.CONTRIB_ALIASES:
    package = alias.rpartition('.')[0]
    assert package in module_aliases.CONTRIB_ALIASES or alias in (
        f'{api}.contrib'
        for api in (*module_aliases.APIS, 'tensorflow_estimator'))
