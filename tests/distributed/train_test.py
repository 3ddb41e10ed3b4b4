# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The main job with real processes: it trains, resumes, and ends in order."""

import json
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest
import tensorflow as tf

from tests.forks import forked_programs
from tfplugin import events
from tfplugin.bin import options as options_lib
from tfplugin.bin import run_files
from tfplugin.bin import train_lib
from tfplugin.bin.processes import local_cluster
from tfplugin.report.reading import scalars

pytestmark = [pytest.mark.distributed, pytest.mark.usefixtures('forking')]
_LIMIT = 120
_ROOT = pathlib.Path(__file__).absolute().parents[2]


def _options(model_dir, **kwargs):
  return options_lib.TrainOptions(
      model_dir=str(model_dir), finish_limit_secs=60.0,
      **{'steps': 400, **kwargs})


@pytest.fixture(scope='module')
def elastic(tmp_path_factory, forking):
  """A run of the default job, shortened, and its options."""
  options = _options(tmp_path_factory.mktemp('elastic'))
  return options, train_lib.train(options)


@pytest.mark.sampled(3)
def test_the_default_job_learns(elastic):
  _, result = elastic
  assert not forked_programs.left()
  # Guessing gets 10%. The full job is longer and gets more than 96%.
  assert result.accuracy > 0.8
  assert result.last_step >= 400
  assert set(result.roles) == {'chief:0', 'worker:0'}
  # A late worker may make no step at all; all steps together are the run's.
  assert sum(s.num_steps for s in result.roles.values() if s) >= 400
  assert not result.lost
  assert result.figures['elastic distance'] >= 0.0


def test_the_default_job_leaves_its_files(elastic):
  options, result = elastic
  assert result.files['checkpoint'].startswith(options.model_dir)
  assert result.files['report'] == f'tfplugin-report {options.model_dir}'
  figure = pathlib.Path(result.files['curves'])
  assert figure.read_bytes().startswith(b'\x89PNG')
  logs = sorted(p.name for p in run_files.log_dir(options.model_dir).iterdir())
  assert logs == ['chief-0.log', 'evaluator-0.log', 'ps-0.log', 'worker-0.log']
  curve = scalars.read_tree(options.model_dir)['eval']['accuracy']
  assert curve.values[-1] == result.accuracy


def test_the_checkpoint_is_that_of_a_plain_model(elastic):
  options, _ = elastic
  reader = tf.train.load_checkpoint(options.model_dir)
  shapes = reader.get_variable_to_shape_map()
  assert shapes['hidden1/kernel'] == [64, 128]
  assert not [name for name in shapes if 'center' in name]


def test_no_worker_waits_half_a_minute(elastic):
  options, _ = elastic
  log = run_files.log_dir(options.model_dir) / 'worker-0.log'
  assert 'Waiting for model to be ready' not in log.read_text()


@pytest.mark.sampled(3)
def test_a_second_run_resumes_and_a_third_only_evaluates(elastic):
  options, first = elastic
  logs = {path: path.read_bytes()
          for path in pathlib.Path(options.model_dir).rglob('*.jsonl')}
  # Under a strategy, which continues from what the wrapper has trained.
  resumed = train_lib.train(_options(
      options.model_dir, strategy='elastic_average', steps=600))
  assert resumed.first_step == first.last_step
  assert resumed.last_step >= 600
  again = train_lib.train(_options(options.model_dir, steps=600))
  assert not again.roles
  assert (again.last_step, again.accuracy) == (resumed.last_step,
                                               resumed.accuracy)
  # Events and samples of a session stay, and the next ones follow them.
  assert logs and all(path.read_bytes().startswith(log)
                      for path, log in logs.items())


@pytest.mark.sampled(3)
def test_the_run_goes_on_without_a_killed_worker(tmp_path):
  options = _options(tmp_path, strategy='drop_stale', evaluator=False,
                     steps=3000, restart='never')
  killer = subprocess.Popen([sys.executable, '-c', _KILL, str(tmp_path),
                             'worker-0'])
  try:
    result = train_lib.train(options)
  finally:
    killer.kill()
    killer.wait()
  assert result.lost == {'worker:0': 'was ended by SIGKILL'}
  assert result.last_step >= 3000
  # Without a lost update the counts are the run's, but for the lost worker's.
  assert 0 < result.figures['applied'] <= result.last_step
  assert not forked_programs.left()


@pytest.mark.sampled(3)
def test_a_dead_ps_ends_the_run_with_an_error(tmp_path):
  options = _options(tmp_path, wrapper='none', workers=0, ps=1,
                     evaluator=False, steps=100000, restart='never')
  killer = subprocess.Popen(
      [sys.executable, '-c', _KILL, str(tmp_path), 'ps-0'])
  try:
    with pytest.raises(local_cluster.RoleError,
                       match=r'ps:0 was ended by SIGKILL. The last lines of'):
      train_lib.train(options)
  finally:
    killer.kill()
    killer.wait()
  assert not forked_programs.left()


def test_ctrl_c_saves_a_last_checkpoint_and_leaves_no_process(tmp_path):
  # local_cluster_test.py sends every signal, SIGKILL too, to small programs.
  program = subprocess.Popen(
      [sys.executable, '-m', 'tfplugin.bin.train', '--wrapper=none',
       '--workers=0', '--ps=1', '--steps=100000', '--noevaluator',
       f'--model_dir={tmp_path}'],
      cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
  try:
    _wait_until(lambda: any(
        e.name == 'training' for e in events.read_run(tmp_path).events))
    children = psutil.Process(program.pid).children(recursive=True)
    # ps, chief and the guard.
    assert len(children) >= 3
    program.send_signal(signal.SIGINT)
    assert program.wait(_LIMIT) == 130
    # Not that of the start alone: the step at which the chief was told to end.
    told = events.read_run(tmp_path).events
    saves = [e for e in told if e.name == 'saving']
    last = saves[-2].step
    stop, = (e for e in told if e.name == 'stopping')
    assert stop.task == 'chief:0' and stop.details == {'signal': 'SIGTERM'}
    assert run_files.global_step(str(tmp_path)) == last > 0
    assert saves[-1].kind == 'end' and saves[-1].time > stop.time
    tasks = {t['task']: t for t in json.loads(
        (tmp_path / 'summary.json').read_text())['tasks']}
    assert tasks['chief:0']['exit_status'] == 143
    assert tasks['chief:0']['last_step'] == last
    assert tasks['ps:0']['exit_status'] == -signal.SIGTERM
    assert {t['status'] for t in tasks.values()} == {'stopped'}
    # Nobody died, the ps that a signal has ended at once neither.
    ends = {e.task: e for e in told}
    assert {task: e.name for task, e in ends.items()} == {
        'chief:0': 'stopped', 'ps:0': 'stopped'}
    assert program.stderr.read().splitlines()[-1] == (
        f'Stopped on request at step {ends["chief:0"].step:,}, saved '
        f'model.ckpt-{last}, the same command continues.')
  finally:
    program.kill()
  _, alive = psutil.wait_procs(children, timeout=30)
  assert not alive


@pytest.mark.sampled(3)
def test_clipped_embeddings_are_within_the_bound(tmp_path):
  options = _options(tmp_path, strategy='clip', model='embedding',
                     workers=1, max_norm=0.5, steps=200, evaluator=False)
  train_lib.train(options)
  reader = tf.train.load_checkpoint(options.model_dir)
  norms = np.linalg.norm(reader.get_tensor('embedding'), axis=1)
  # To rounding: the norm here is computed in another order.
  assert 0.4 < norms.max() <= 0.5 * (1 + 1e-6)


# Ends a task of a run once the chief has made a step.
_KILL = '''
import json, os, pathlib, signal, sys, time
run = pathlib.Path(sys.argv[1])
chief = run / 'events' / 'chief-0.jsonl'
while not (chief.exists() and '"sampling"' in chief.read_text()):
  time.sleep(.05)
last = (run / 'events' / f'{sys.argv[2]}.jsonl').read_text().splitlines()[-1]
os.kill(json.loads(last)['pid'], signal.SIGKILL)
'''


def _wait_until(condition):
  deadline = time.monotonic() + _LIMIT
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.05)
