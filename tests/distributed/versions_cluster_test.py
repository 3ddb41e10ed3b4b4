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
import shlex
import sys

import pytest
import tensorflow as tf

from tests.chaos import play
from tests.distribute.shards import cross_shard_extended_test
from tests.distributed import decorator_cluster_test
from tests.distributed import strategy_cluster_test
from tests.helpers import environments
from tfplugin import events
from tfplugin.bin import launch_lib
from tfplugin.bin.launches import launch_options

pytestmark = pytest.mark.distributed
_ROOT = pathlib.Path(__file__).absolute().parents[2]
# Stands for sys.executable, and becomes the Python of the task that it is.
_CHOOSE = """\
#!/bin/sh
for task in {others}; do
  case "$TF_CONFIG" in *"$task"*) exec {other} "$@" ;; esac
done
exec {own} "$@"
"""
_SECOND_HALF = (('worker', 1), ('ps', 1), ('evaluator', 0))


@pytest.fixture(name='mix')
def _mix(monkeypatch, tmp_path):
  """Returns a function that gives some of the tasks to the other version."""
  other = environments.other_python()
  if other is None:
    pytest.skip(environments.ONE)

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


def test_a_run_is_upgraded_task_by_task(tmp_path):
  other = environments.other_python()
  if other is None:
    pytest.skip(environments.ONE)
  steps = {'worker:0': 20, 'ps:0': 40, 'ps:1': 60, 'chief:0': 80}
  with play.environment():
    launch_lib.launch(launch_options.LaunchOptions(
        command=(sys.executable, str(play.PROGRAM), 'plain', str(tmp_path),
                 '120', '2'),
        logs_dir=str(tmp_path / 'logs'), model_dir=str(tmp_path / 'model'),
        workers=1, ps=2, restart='on_failure', restart_delay_secs=0.1,
        inject='; '.join(f'upgrade {task} to {other} at step {step}'
                         for task, step in steps.items())), lambda _: None)
  assert play.last_step(tmp_path) >= 120
  versions = {task: [] for task in steps}
  for event in events.read_run(tmp_path / 'model').events:
    if 'versions' in event.details:
      versions[event.task].append(event.details['versions']['tensorflow'])
  # Each task has started with one version, and ended with the other.
  old, new = versions['chief:0']
  assert (old, versions) == (
      tf.__version__, dict.fromkeys(steps, [old, new]))


def test_the_environments_are_found():
  """Not in a sandbox, which holds none."""
  assert not (_ROOT / '.venv').is_dir() or environments.pythons()
