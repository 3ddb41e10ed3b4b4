# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the flags of tfplugin-train-tpu."""
# BUILD data: //testdata

import os
import pathlib
import subprocess
import sys

_ROOT = pathlib.Path(__file__).absolute().parents[2]


def _run(tmp_path, *flags):
  environment = {
      **os.environ,
      'PYTHONPATH': os.pathsep.join([str(_ROOT), *filter(None, sys.path)]),
  }
  return subprocess.run(
      [sys.executable, '-m', 'tfplugin.bin.train_tpu',
       f'--model_dir={tmp_path}', *flags],
      env=environment, timeout=120, capture_output=True, text=True, check=False)


def test_trains_and_tells_the_accuracy(tmp_path):
  done = _run(tmp_path, '--num_shards=2', '--train_steps=20')
  assert done.returncode == 0, done.stderr
  accuracy, files = done.stdout.splitlines()
  assert accuracy.startswith('accuracy on the held-out rows: 0.')
  assert accuracy.endswith('after 20 steps')
  assert files == f'checkpoint and TensorBoard summaries: {tmp_path}'
  assert (tmp_path / 'model.ckpt-20.index').is_file()


def test_batch_that_the_shards_do_not_divide_is_one_clear_line(tmp_path):
  done = _run(tmp_path, '--num_shards=3')
  assert done.returncode == 2
  assert ('Error: --train_batch_size must be a multiple of --num_shards, 3. '
          'Received: 64. Pass e.g. 66.') in done.stderr
  assert 'Traceback' not in done.stderr
  assert not list(tmp_path.iterdir())
