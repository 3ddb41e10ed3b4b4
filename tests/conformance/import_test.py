# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks that `import tfplugin` loads nothing heavy."""
# BUILD deps: //tfplugin:everything

from __future__ import annotations

import json
import os
import subprocess
import sys

# TensorFlow loads these on first use; tfplugin must leave that to the user.
_HEAVY = ('keras', 'matplotlib', 'psutil', 'rich', 'tensorboard',
          'tensorflow_estimator', 'tf_keras')
_PROGRAM = """
import json, sys
import tensorflow as tf
before = set(sys.modules)
import tfplugin
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def _modules_that_tfplugin_adds() -> list:
  path = os.pathsep.join(filter(None, sys.path))
  result = subprocess.run(
      [sys.executable, '-c', _PROGRAM],
      env={'PYTHONPATH': path, 'TF_CPP_MIN_LOG_LEVEL': '2'},
      capture_output=True, text=True, timeout=120, check=True)
  return json.loads(result.stdout)


def test_import_loads_no_heavy_module():
  added = _modules_that_tfplugin_adds()
  assert 'tfplugin' in added
  heavy = [name for name in added if name.split('.')[0] in _HEAVY]
  assert not heavy


def test_import_loads_neither_programs_nor_test_helpers():
  added = _modules_that_tfplugin_adds()
  assert not [name for name in added
              if name.startswith(('tfplugin.bin', 'tfplugin.testing'))]
