# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Libraries that are built on Estimator, and what is wrong where one fails.

Nobody has changed them for TensorFlow 2.16 or newer. They are installed from
their wheels, without what they require: most forbid a newer TensorFlow.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Library:
  """A distribution, and what else of it is installed.

  Attributes:
    name: Of the distribution.
    requirements: It with its version, then what it imports and TensorFlow does
      not bring. A pair is for TensorFlow 2.15, and for a newer one.
  """
  name: str
  requirements: tuple

  @property
  def program(self) -> str:
    return f'tests.living.{self.name.replace("-", "_")}_program'

  @property
  def label(self) -> str:
    """Its name with its versions."""
    versions = dict.fromkeys(
        one.partition('==')[2] for one in self.pairs()[0])
    return f'{self.name} {", ".join(versions)}'

  def pairs(self) -> list:
    """What is installed, for TensorFlow 2.15 and for a newer one."""
    return [(one, one) if isinstance(one, str) else one
            for one in self.requirements]

  def installed(self, tensorflow: str) -> list:
    """What is installed beside a version of TensorFlow."""
    is_newer = not tensorflow.startswith('2.15.')
    return [pair[is_newer] for pair in self.pairs()]


@dataclasses.dataclass(frozen=True)
class Fault:
  """Why a library fails.

  Attributes:
    library: Whose fault it is.
    text: Is in the error.
    reason: One or two sentences for the page.
    remedy: Python that a program may begin with, or None.
  """
  library: str
  text: str
  reason: str
  remedy: str | None = None


LIBRARIES = (
    Library('adanet', ('adanet==0.9.0',)),
    Library('deepctr', ('deepctr==0.9.4',)),
    Library('tensorflow-gan', (
        'tensorflow-gan==2.1.0',
        ('tensorflow-probability==0.23.0', 'tensorflow-probability==0.25.0'),
        'tensorflow-hub==0.16.1', 'cloudpickle==3.1.2', 'decorator==5.3.1',
        'dm-tree==0.1.10')),
    Library('tensorflow-ranking', ('tensorflow-ranking==0.5.5',)),
    Library('tensorflow-recommenders-addons', (
        ('tensorflow-recommenders-addons==0.7.2',
         'tensorflow-recommenders-addons==0.8.1'),)),
)

_COMPILED = (
    'Its wheels hold ops that are compiled for one TensorFlow and for Python '
    '3.9 to 3.11. There is none for TensorFlow 2.21: stay with 2.15, where '
    '0.7.2 runs (0.8.0 needs CUDA there).')
FAULTS = (
    Fault('adanet', "No module named 'tensorflow.python.training.tracking'",
          'It imports a private module that TensorFlow had moved before 2.15. '
          'Begin the program with the line below.',
          'import sys, tensorflow.python.checkpoint.graph_view; sys.modules['
          '"tensorflow.python.training.tracking"] = sys.modules['
          '"tensorflow.python.checkpoint"]'),
    Fault('tensorflow-gan',
          "module 'inspect' has no attribute 'getargspec'",
          'Python 3.11 removed `inspect.getargspec`, with every TensorFlow. '
          'Take Python 3.10, or begin the program with the line below.',
          'import collections, inspect; inspect.getargspec = lambda f: '
          'collections.namedtuple("Spec", "args keywords")('
          '*inspect.getfullargspec(f)[:3:2])'),
    Fault('tensorflow-recommenders-addons', 'No matching distribution found',
          _COMPILED),
)


def fault_of(library: str, error: str) -> Fault | None:
  """Returns why `library` has failed with `error`, or None: not known."""
  return next((fault for fault in FAULTS if fault.library == library
               and fault.text in error), None)
