# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Faults for the tests of a program: parsed, and handed to its processes.

A program that trains by `tfplugin.estimator.train_and_evaluate` brings the
faults upon itself when its environment asks for them. `tfplugin-launch` does,
with `--inject`; a test starts the program with `variables(...)` added to the
environment. docs/faults.md has the language.
"""

from tfplugin.faults.acts import InjectedError
from tfplugin.faults.environment import variables
from tfplugin.faults.language import Fault
from tfplugin.faults.language import parse

__all__ = (
    'Fault',
    'InjectedError',
    'parse',
    'variables',
)
