# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clusters whose tasks are of two versions of TensorFlow.

They have to pass what is checked of clusters of one version. The other version
is that of a second environment, which `make venv TF=2.21` makes beside `.venv`.
"""
# BUILD data: //tests/distribute/shards:cross_shard_extended_test
# BUILD data: //tests/distributed:decorator_cluster_test
# BUILD data: //tests/distributed:strategy_cluster_test

import pathlib
import re
import shlex
import sys

import pytest
import tensorflow as tf

from tests.distribute.shards import cross_shard_extended_test
from tests.distributed import decorator_cluster_test
from tests.distributed import strategy_cluster_test

pytestmark = pytest.mark.distributed
_ROOT = pathlib.Path(__file__).absolute().parents[2]
_PACKAGES = 'lib/python*/site-packages'
_VERSION = re.compile(r'tensorflow(?:_cpu)?-2\.(\d+)\..*\.dist-info')
# Stands for sys.executable, and becomes the Python of the task that it is.
_CHOOSE = """\
#!/bin/sh
for task in {others}; do
  case "$TF_CONFIG" in *"$task"*) exec {other} "$@" ;; esac
done
exec {own} "$@"
"""
_SECOND_HALF = (('worker', 1), ('ps', 1), ('evaluator', 0))


def _pythons() -> dict[int, pathlib.Path]:
  """Returns the Pythons of the environments that are here, by minor version."""
  return {int(match.group(1)): environment / 'bin/python'
          for environment in sorted(_ROOT.glob('.venv*'))
          for package in environment.glob(f'{_PACKAGES}/tensorflow*.dist-info')
          if (match := _VERSION.fullmatch(package.name))}


@pytest.fixture(name='mix')
def _mix(monkeypatch, tmp_path):
  """Returns a function that gives some of the tasks to the other version."""
  own = int(tf.__version__.split('.')[1])
  others = {minor: python for minor, python in _pythons().items()
            if minor != own}
  if not others:
    pytest.skip('there is one TensorFlow; `make venv TF=2.21` makes another')
  other = others[max(others, key=lambda minor: abs(minor - own))]

  def mix(tasks):
    patterns = [shlex.quote(f'"type": "{job}", "index": {index}')
                for job, index in tasks]
    program = tmp_path / 'python'
    program.write_text(_CHOOSE.format(
        others=' '.join(patterns), other=shlex.quote(str(other)),
        own=shlex.quote(sys.executable)))
    program.chmod(0o755)
    monkeypatch.setattr(sys, 'executable', str(program))

  return mix


@pytest.mark.sampled(3)
def test_strategies_drop_and_clip(mix, tmp_path, monkeypatch):
  mix(_SECOND_HALF)
  checks = strategy_cluster_test
  checks.test_drop_stale_applies_as_often_as_it_counts_and_clips(
      tmp_path, monkeypatch)


@pytest.mark.sampled(3)
def test_decorated_copies_meet_their_centre(mix, tmp_path):
  mix(_SECOND_HALF)
  checks = decorator_cluster_test
  trained = checks.run('elastic', tmp_path)
  checks.test_elastic_centre_is_start_plus_all_differences(trained)
  checks.test_elastic_checkpoint_evaluation_and_export_are_of_the_centre(
      trained)


@pytest.mark.sampled(3)
def test_shards_reduce(mix):
  mix([('worker', 0)])
  checks = cross_shard_extended_test
  checks.test_strategy_run_on_two_workers(
      None, [100 - 2.5 * 1.5] * 2, engine='tensorflow')


def test_the_environments_are_found():
  """Not in a sandbox, which holds none."""
  assert not (_ROOT / '.venv').is_dir() or _pythons()
