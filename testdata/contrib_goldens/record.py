# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Records what tf.contrib's wrappers do; needs TensorFlow 1.15, Python 3.7.

    python3.7 -m testdata.contrib_goldens.record [--check] [NAME...]

Writes one JSON file per wrapper beside this file. A second run gives the same
bytes; --check compares with the files that are there instead of writing.
"""

from __future__ import annotations

import collections
import os
import random
import sys
import types

os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import numpy as np
import tensorflow as tf

from testdata.contrib_goldens import drive
from testdata.contrib_goldens import goldens
from testdata.contrib_goldens import scenarios


def _contrib():
  """The originals, under the names that the drivers use."""
  from tensorflow.contrib import estimator
  from tensorflow.contrib import opt
  from tensorflow.contrib import tpu
  from tensorflow.python.tpu import tpu_function
  return types.SimpleNamespace(
      opt=opt, estimator=estimator, tpu=tpu, tf_estimator=tf.estimator,
      shard_context=tpu_function.tpu_shard_context)


def main(arguments):
  """Records the scenarios named, or all; returns the exit status."""
  tf.logging.set_verbosity(tf.logging.FATAL)
  check = '--check' in arguments
  names = [name for name in arguments if not name.startswith('--')]
  chosen = [s for s in scenarios.all_scenarios()
            if not names or s['name'] in names]
  contrib = _contrib()
  recorded = collections.defaultdict(dict)
  for scenario in chosen:
    random.seed(0)
    np.random.seed(0)
    result = drive.drive(tf, contrib, scenario)
    recorded[scenario['wrapper']][scenario['name']] = result
    print(scenario['name'], result.get('error', ''), flush=True)
    if names:
      print(goldens.to_text(result))
  if names:
    return 0
  changed = [w for w, results in recorded.items()
             if not goldens.same_as_file(w, results)]
  if not check:
    for wrapper, results in recorded.items():
      goldens.write(wrapper, results)
  print(len(chosen), 'scenarios; changed:', ', '.join(changed) or 'nothing')
  return int(check and bool(changed))


if __name__ == '__main__':
  status = main(sys.argv[1:])
  sys.stdout.flush()
  os._exit(status)  # Sessions that hang for good must not hold up the exit.
