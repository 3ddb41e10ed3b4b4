# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A table in parts starts from a checkpoint, in each process of a cluster."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tests.distributed import clusters

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


def _run(form, how, behavior, tasks, directory, **settings):
  """Returns the rows that each task has seen, and those of the checkpoint."""
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('body/table', initializer=_ROWS[:, None].astype('f'))
    tf1.get_variable('head/w', initializer=[[9.0]])
    session.run(tf1.global_variables_initializer())
    path = tf1.train.Saver().save(session, str(directory / 'old/model.ckpt'))
  clusters.run(directory, clusters.configs_of(*tasks), form=form, how=how,
               program=(str(PROGRAM),), behavior=behavior, pretrained=path,
               max_steps=4, **settings)
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
