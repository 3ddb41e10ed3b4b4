# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A run ends right, however its data ends: a chief, a worker, a ps.

Each task's program writes how many steps it made. The last checkpoint has all.
"""

import functools
import json
import os
import sys

import pytest
import tensorflow as tf

from tests.distributed import clusters
from tfplugin.bin import launch_lib
from tfplugin.bin.launches import launch_options
from tfplugin.bin.processes import supervision

pytestmark = [pytest.mark.distributed, pytest.mark.usefixtures('forking'),
              pytest.mark.timeout(180)]


def _launch(directory, monkeypatch, evaluator=False, **settings):
  """Runs the cluster."""
  root = str(clusters.PROGRAM.parents[2])
  monkeypatch.setenv(
      'PYTHONPATH', os.pathsep.join([root, os.environ.get('PYTHONPATH', '')]))
  launch_lib.launch(launch_options.LaunchOptions(
      command=(sys.executable, str(clusters.PROGRAM),
               json.dumps({'directory': str(directory), **settings})),
      model_dir=str(directory / 'model'), logs_dir=str(directory / 'logs'),
      workers=1, ps=1, evaluator=evaluator))


def _run(directory, monkeypatch, evaluator=False, **settings):
  """Runs the cluster; returns the steps of each task that trains."""
  _launch(directory, monkeypatch, evaluator, **settings)
  return [int((directory / f'{name}.made').read_text())
          for name in ('chief-0', 'worker-0')]


def _check_last_checkpoint(directory, num_steps):
  newest = tf.train.latest_checkpoint(str(directory / 'model'))
  reader = tf.train.load_checkpoint(newest)
  assert reader.get_tensor('global_step') == num_steps
  assert newest.endswith(f'-{num_steps}')
  return reader.get_tensor('w')


@pytest.mark.sampled(4)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_the_input_of_the_chief_ends_first(form, tmp_path, monkeypatch):
  made = _run(tmp_path, monkeypatch, form=form, **{
      'chief-0': {'batches': 20},
      'worker-0': {'batches': 200, 'after': ['chief-0'], 'secs': 0.005}})
  assert made == [20, 200]
  w = _check_last_checkpoint(tmp_path, 220)
  if 'elastic' not in form:
    assert w == -220


@pytest.mark.sampled(4)
@pytest.mark.parametrize('form', [
    form for form in clusters.FORMS if form != 'elastic_optimizer'])
def test_a_saver_hook_of_the_model_saves_the_last_steps(
    form, tmp_path, monkeypatch):
  """One of the chief's own takes the place of the Estimator's."""
  made = _run(tmp_path, monkeypatch, form=form, own_saver=True, **{
      'chief-0': {'batches': 20},
      'worker-0': {'batches': 60, 'after': ['chief-0'], 'secs': 0.005}})
  assert made == [20, 60]
  _check_last_checkpoint(tmp_path, 80)


@pytest.mark.sampled(12)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_a_worker_that_steps_is_not_given_up(form, tmp_path, monkeypatch):
  """The chief gives up after 3 s without a step; these take 12 s."""
  made = _run(tmp_path, monkeypatch, form=form,
              limits={'finish_limit_secs': 6.0}, **{
                  'chief-0': {'batches': 20},
                  'worker-0': {'batches': 85, 'after': ['chief-0'],
                               'secs': 0.15}})
  assert made == [20, 85]
  _check_last_checkpoint(tmp_path, 105)


@pytest.mark.sampled(12)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_a_hook_stops_the_chief_alone(form, tmp_path, monkeypatch):
  made = _run(tmp_path, monkeypatch, form=form, evaluator=True, **{
      'chief-0': {'stop_after': 20},
      'worker-0': {'batches': 280, 'after': ['chief-0']}})
  assert made == [20, 280]
  w = _check_last_checkpoint(tmp_path, 300)
  # TensorFlow tells an exporter of the end at `max_steps` alone.
  exported, = (tmp_path / 'model/export/last').iterdir()
  served = tf.train.load_checkpoint(str(exported / 'variables/variables'))
  assert served.get_tensor('w') == w


@pytest.mark.sampled(4)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_estimators_early_stopping_stops_all(form, tmp_path, monkeypatch):
  """The chief asks after 20 steps of its own; the worker may make few more."""
  chief, worker = _run(tmp_path, monkeypatch, form=form, **{
      'chief-0': {'stop_early_after': 20, 'others': ['worker-0']},
      'worker-0': {'stop_early_after': 20, 'secs': 0.01}})
  assert chief == 20 and worker >= 1
  _check_last_checkpoint(tmp_path, chief + worker)


@pytest.mark.sampled(12)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_the_last_checkpoint_has_the_step_of_its_name(
    form, tmp_path, monkeypatch):
  made = _run(tmp_path, monkeypatch, form=form, max_steps=120, evaluator=True,
              save_steps=20, **{
                  'chief-0': {'others': ['worker-0']},
                  'worker-0': {'others': ['chief-0'], 'secs': 0.01}})
  assert sum(made) >= 120
  w = _check_last_checkpoint(tmp_path, sum(made))
  exported, = (tmp_path / 'model/export/last').iterdir()
  served = tf.train.load_checkpoint(str(exported / 'variables/variables'))
  assert served.get_tensor('w') == w


@pytest.mark.sampled(4)
@pytest.mark.parametrize('form', [
    'elastic', 'elastic_strategy', 'elastic_optimizer', 'elastic_together',
    'elastic_strategy_together'])
def test_a_worker_begins_with_what_a_hook_of_the_chief_writes(
    form, tmp_path, monkeypatch):
  """The hook takes 3 s; the chief makes 4 steps before the worker begins."""
  _run(tmp_path, monkeypatch, form=form, writes=True, **{
      'chief-0': {'batches': 20, 'others': ['worker-0'], 'writes_after': 3.0},
      'worker-0': {'batches': 20}})
  assert 2.0 < float((tmp_path / 'worker-0.first').read_text()) <= 5.0


@pytest.mark.sampled(12)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_a_worker_that_hangs_holds_up_no_run(form, tmp_path, monkeypatch):
  """Its process is stopped in its step 10, and never continues.

  The chief saves after 3 s without a step, and then reports for the worker.
  """
  monkeypatch.setattr(supervision, 'Settings', functools.partial(
      supervision.Settings, left_behind_secs=3.0))
  _launch(tmp_path, monkeypatch, form=form, limits={'finish_limit_secs': 6.0},
          **{'chief-0': {'batches': 30, 'others': ['worker-0']},
             'worker-0': {'hangs_after': 10}})
  newest = tf.train.load_checkpoint(str(tmp_path / 'model'))
  # An input is read ahead of the steps.
  assert 36 <= newest.get_tensor('global_step') <= 40
  tasks = json.loads((tmp_path / 'logs/summary.json').read_text())['tasks']
  assert {task['task']: task['status'] for task in tasks} == {
      'ps:0': 'done', 'chief:0': 'done', 'worker:0': 'lost'}
