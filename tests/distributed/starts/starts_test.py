# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A table in parts starts from a checkpoint, in each process of a cluster."""

import json
import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.chaos import play
from tests.distributed import clusters
from tests.forks import forked_programs
from tfplugin.bin import launch_lib
from tfplugin.bin.launches import launch_options

tf1 = tf.compat.v1
pytestmark = [pytest.mark.distributed, pytest.mark.usefixtures('forking'),
              pytest.mark.timeout(150)]

PROGRAM = pathlib.Path(__file__).with_name('starts_program.py')
_ROWS = np.array([5.0, 6.0, 7.0, 8.0])
HOWS = ['settings', 'init_from_checkpoint', 'scope', 'hook', 'init_fn',
        'restore', 'named']
SHARDS = ['one_shard', 'cross_shard_strategy', 'clip_cross_shard']
ON_SERVERS = ['elastic', 'cross_shard', 'elastic_strategy',
              'drop_stale_strategy', 'packed_strategy']


def _save_rows(directory):
  """Returns the path of the checkpoint to start from."""
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('body/table', initializer=_ROWS[:, None].astype('f'))
    tf1.get_variable('head/w', initializer=[[9.0]])
    session.run(tf1.global_variables_initializer())
    return tf1.train.Saver().save(session, str(directory / 'old/model.ckpt'))


def _run(form, how, behavior, tasks, directory, **settings):
  """Returns the rows that each task has seen, and those of the checkpoint."""
  clusters.run(directory, clusters.configs_of(*tasks), form=form, how=how,
               program=(str(PROGRAM),), behavior=behavior,
               pretrained=_save_rows(directory), max_steps=4, **settings)
  return _results(directory)


def _results(directory):
  reader = tf.train.load_checkpoint(str(directory / 'model'))
  assert sorted(reader.get_variable_to_shape_map()) == [
      'body/table', 'global_step', 'head/w'] + [
          'stale_counter'] * reader.has_tensor('stale_counter')
  assert reader.get_tensor('head/w') == 2.0
  return [json.loads(path.read_text()) for path in directory.glob('*.seen')], (
      reader.get_tensor('body/table')[:, 0])


@pytest.mark.sampled(14)
@pytest.mark.parametrize('behavior', ['v1', 'v2'])
@pytest.mark.parametrize('form_and_how', [
    (form, how) for form in SHARDS for how in HOWS], ids='-'.join)
def test_each_process_of_shards_starts_with_the_rows(
    form_and_how, behavior, tmp_path):
  """Each of 4 steps takes a half off each row, in the copy of each process."""
  seen, saved = _run(*form_and_how, behavior, ['chief-0', 'worker-0'],
                     tmp_path, rate=0.5)
  assert seen == [[_ROWS.tolist(), (_ROWS - 2.0).tolist()]] * 2
  np.testing.assert_array_equal(saved, _ROWS - 2.0)


@pytest.mark.sampled(20)
@pytest.mark.parametrize('behavior', ['v1', 'v2'])
@pytest.mark.parametrize('form_and_how', [
    (form, how) for form in ON_SERVERS for how in HOWS
    if how in ('settings', 'init_from_checkpoint', 'init_fn', 'restore')],
                         ids='-'.join)
def test_workers_of_servers_start_with_the_rows(
    form_and_how, behavior, tmp_path):
  seen, saved = _run(*form_and_how, behavior, [
      'ps-0', 'ps-1', 'chief-0', 'worker-0'], tmp_path, rate=0.0)
  # A worker may find that all steps have been made.
  assert seen and all(rows == _ROWS.tolist() for task in seen for rows in task)
  np.testing.assert_array_equal(saved, _ROWS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize('form', ['drop_stale_strategy', 'elastic'])
def test_a_chief_that_ends_in_its_init_fn_calls_it_again(form, tmp_path):
  # Its first process has initialised the variables; no worker may use them.
  settings = {'form': form, 'how': 'interrupted', 'behavior': 'v2', 'rate': 0.0,
              'directory': str(tmp_path), 'pretrained': _save_rows(tmp_path),
              'max_steps': 50}
  options = launch_options.LaunchOptions(
      command=(sys.executable, str(PROGRAM), json.dumps(settings)),
      logs_dir=str(tmp_path / 'logs'), model_dir=str(tmp_path / 'model'),
      workers=1, ps=2, restart='always')
  with play.environment():
    launch_lib.launch(options, lambda line: None)
  assert not forked_programs.left()
  tasks = json.loads((tmp_path / 'logs/summary.json').read_text())['tasks']
  assert {task['task']: task['restarts'] for task in tasks}['chief:0'] == 1
  seen, saved = _results(tmp_path)
  assert seen and all(rows == _ROWS.tolist() for task in seen for rows in task)
  np.testing.assert_array_equal(saved, _ROWS)
