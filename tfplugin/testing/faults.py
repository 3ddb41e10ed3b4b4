# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Faults for the tests of a program, parsed and passed to its processes.

A program that trains by `tfplugin.estimator.train_and_evaluate` injects the
faults in its environment variables into itself. `tfplugin-launch --inject` sets
these variables. A test starts the program with `variables(...)` added to its
environment. docs/faults.md has the language.
"""

from tfplugin.faults.acts import InjectedError
from tfplugin.faults.language import Fault
from tfplugin.faults.language import parse
from tfplugin.faults.language import variables

__all__ = (
    'Fault',
    'InjectedError',
    'parse',
    'variables',
)
