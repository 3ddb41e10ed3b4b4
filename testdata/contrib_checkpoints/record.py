# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Records checkpoints of tf.contrib; needs TensorFlow 1.15, Python 3.7.

    python3.7 -m testdata.contrib_checkpoints.record

Trains each program of programs.py, saves, goes on from there, and keeps where
it ended in after.json.
"""

from __future__ import annotations

import json
import os
import pathlib
import random

os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import numpy as np
import tensorflow as tf

from testdata.contrib_checkpoints import programs
from testdata.contrib_goldens import record

_FOLDER = pathlib.Path(__file__).absolute().parent


def main():
  """Writes a checkpoint for each case, and after.json."""
  tf.logging.set_verbosity(tf.logging.FATAL)
  contrib = record._contrib()
  after = {}
  for name, case in sorted(programs.CASES.items()):
    random.seed(0)
    np.random.seed(0)
    path = str(_FOLDER / name / 'model.ckpt-3')
    os.makedirs(os.path.dirname(path), exist_ok=True)
    programs.Program(tf, contrib, case).run(save_as=path)
    after[name] = programs.Program(tf, contrib, case).run(checkpoint=path)
    print(name, sorted(
        tf.train.NewCheckpointReader(path).get_variable_to_shape_map()))
  (_FOLDER / 'after.json').write_text(
      json.dumps(after, indent=1, sort_keys=True) + '\n')


if __name__ == '__main__':
  main()
