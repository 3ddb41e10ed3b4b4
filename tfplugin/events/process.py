# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Description of a process, its stacks on a signal, and its faults."""

from __future__ import annotations

import faulthandler
import importlib
import os
import platform
import signal
import sys
from typing import Any

# See docs/faults.md.
FAULTS_VARIABLE = 'TFPLUGIN_FAULTS'

STACKS_SIGNAL = getattr(signal, 'SIGUSR1', None)
_STDERR = 2
_MODULES = ('tensorflow', 'tensorflow_estimator', 'tf_keras', 'numpy')


def describe() -> dict[str, Any]:
  """Returns `host` and `versions`, the details of the event `starting`.

  This function imports nothing. Modules that the process has not imported are
  left out.
  """
  modules = {name: sys.modules.get(name) for name in _MODULES}
  found = {name: getattr(module, '__version__', None)
           for name, module in modules.items()}
  version = sys.modules.get('tfplugin.version')
  found = {'tfplugin': getattr(version, '__version__', None),
           'python': platform.python_version(), **found}
  return {'host': platform.node(),
          'versions': {name: str(value) for name, value in found.items()
                       if value is not None}}


def write_stacks_on_signal() -> None:
  """Writes the stacks of all threads to the standard error on `STACKS_SIGNAL`.

  This works also while a thread is inside TensorFlow. A handler that the
  program has installed is kept.
  """
  if STACKS_SIGNAL is not None and (
      signal.getsignal(STACKS_SIGNAL) is signal.SIG_DFL):
    faulthandler.register(STACKS_SIGNAL, file=_STDERR)


def fault_hooks() -> list[Any]:
  """Returns the hook that injects the faults of the environment, if any."""
  if not os.environ.get(FAULTS_VARIABLE):
    return []
  # By its name: only a run with faults loads the tool that injects them.
  return importlib.import_module('tfplugin.faults.fault_hook').hooks()
