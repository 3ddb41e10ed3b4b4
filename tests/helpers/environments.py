# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Environments of other versions of TensorFlow, beside this one's."""

import pathlib
import re
from typing import Optional

import tensorflow as tf

ONE = 'there is one TensorFlow; `make venv TF=2.21` makes another'
_ROOT = pathlib.Path(__file__).absolute().parents[2]
_PACKAGES = 'lib/python*/site-packages'
_VERSION = re.compile(r'tensorflow(?:_cpu)?-2\.(\d+)\..*\.dist-info')


def pythons() -> dict[int, pathlib.Path]:
  """Returns the Pythons of the environments that are here, by minor version."""
  return {int(match.group(1)): environment / 'bin/python'
          for environment in sorted(_ROOT.glob('.venv*'))
          for package in environment.glob(f'{_PACKAGES}/tensorflow*.dist-info')
          if (match := _VERSION.fullmatch(package.name))}


def other_python() -> Optional[pathlib.Path]:
  """Returns the Python of the version farthest from this one; None if alone."""
  own = int(tf.__version__.split('.')[1])
  others = {minor: python for minor, python in pythons().items()
            if minor != own}
  farthest = max(others, key=lambda minor: abs(minor - own), default=None)
  return others.get(farthest)
