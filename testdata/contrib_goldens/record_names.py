# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lists the names of six modules of tf.contrib; needs TensorFlow 1.15.

    python3.7 -m testdata.contrib_goldens.record_names

Writes testdata/contrib_names.json: for each name the names of its parameters,
in order, or null for what is not called.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

MODULES = ('data', 'distribute', 'estimator', 'opt', 'tpu', 'training')
_HERE = os.path.dirname(os.path.abspath(__file__))
_FILE = os.path.join(os.path.dirname(_HERE), 'contrib_names.json')


def _parameters(value):
  if not callable(value):
    return None
  names = list(inspect.signature(
      value.__init__ if isinstance(value, type) else value).parameters)
  return names[1:] if isinstance(value, type) else names


def main():
  recorded = {}
  for name in MODULES:
    module = importlib.import_module('tensorflow.contrib.' + name)
    recorded[name] = {key: _parameters(getattr(module, key))
                      for key in dir(module) if not key.startswith('_')}
  lines = [' %s: {\n%s\n }' % (json.dumps(name), ',\n'.join(
      '  %s: %s' % (json.dumps(key), json.dumps(value))
      for key, value in sorted(names.items())))
           for name, names in recorded.items()]
  with open(_FILE, 'w') as file:
    file.write('{\n%s\n}\n' % ',\n'.join(lines))


if __name__ == '__main__':
  main()
