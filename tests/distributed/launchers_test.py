# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clusters of the kinds that public reports tell of: who evaluates, who is not.

The program is that of `ends_test.py`; each of its steps is in the checkpoint.
"""

import os

import pytest
import tensorflow as tf

from tests.distributed import clusters
from tests.distributed import ends_program
from tfplugin.hooks.shutdown import lost_peers

tf1 = tf.compat.v1
pytestmark = [pytest.mark.distributed, pytest.mark.usefixtures('forking'),
              pytest.mark.timeout(200)]

LATER = {'worker-0': {'batches': 40, 'after': ['chief-0']}}


def _exports(directory):
  return list((directory / 'model/export/last').glob('*/saved_model.pb'))


@pytest.mark.sampled(12)
@pytest.mark.parametrize('form', clusters.STRATEGIES)
def test_an_evaluator_whose_cluster_is_itself_alone(form, tmp_path):
  """TonY gives it a cluster of its own, as no other task is to know it."""
  configs = clusters.configs_of('ps-0', 'chief-0', 'worker-0', 'evaluator-0')
  configs['evaluator-0']['cluster'] = {'evaluator': ['algo-4:2222']}
  clusters.run(tmp_path, configs, form=form, batches=20, **LATER)
  clusters.check(tmp_path, 60)
  assert len(_exports(tmp_path)) == 1


@pytest.mark.sampled(24)
@pytest.mark.parametrize('wait', ['start_delay', 'throttle'])
@pytest.mark.parametrize('form', clusters.FORMS)
def test_an_evaluator_that_waits_ends_with_the_run(form, wait, tmp_path):
  """Half an hour before the first evaluation, or between two."""
  clusters.run(tmp_path, clusters.configs_of(
      'ps-0', 'chief-0', 'worker-0', 'evaluator-0'), form=form, batches=20,
               **{wait: 1800}, **LATER)
  clusters.check(tmp_path, 60)
  assert len(_exports(tmp_path)) == 1
  assert list((tmp_path / 'model/eval').glob('events*'))


@pytest.mark.sampled(24)
@pytest.mark.parametrize('max_steps', [60, None])
@pytest.mark.parametrize('form', clusters.FORMS)
def test_a_master_evaluates_and_exports(form, max_steps, tmp_path):
  """CloudML starts no evaluator beside a master. `None`: the input ends."""
  clusters.run(tmp_path, clusters.configs_of(
      'ps-0', 'master-0', 'worker-0'), form=form, batches=20,
               max_steps=max_steps, **{
                   'worker-0': {'batches': 40, 'after': ['master-0']}})
  clusters.check(tmp_path, 60)
  assert len(_exports(tmp_path)) == 1
  assert list((tmp_path / 'model/eval').glob('events*'))


@pytest.mark.sampled(12)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_a_finished_run_is_started_again(form, tmp_path):
  """A platform restarts a whole job, whose last task it had lost."""
  for _ in range(2):
    clusters.run(tmp_path, clusters.configs_of(
        'ps-0', 'chief-0', 'worker-0', 'evaluator-0'), form=form, batches=20,
                 max_steps=30, **{'worker-0': {'batches': 10, 'after': [
                     'chief-0']}})
    clusters.check(tmp_path, 30)


@pytest.mark.sampled(12)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_a_chief_that_does_more_afterwards_keeps_nobody(form, tmp_path):
  """It compares models, or sends them away; the others' machines are free."""
  clusters.run(tmp_path, clusters.configs_of(
      'ps-0', 'worker-0', 'evaluator-0', 'chief-0'), form=form, batches=20,
               **{**LATER, 'chief-0': {'afterwards_secs': 20}})
  clusters.check(tmp_path, 60)
  ended = {name: (tmp_path / f'{name}.ended').stat().st_mtime
           for name in ('ps-0', 'worker-0', 'evaluator-0', 'chief-0')}
  began_more = (tmp_path / 'chief-0.trained').stat().st_mtime
  assert max(ended[name] for name in ended if name != 'chief-0') < (
      began_more + 15)
  assert ended['chief-0'] > began_more + 19


@pytest.mark.sampled(12)
@pytest.mark.parametrize('form_and_tasks', [
    (form, *tasks) for form in clusters.FORMS
    for tasks in (('chief-0', 'worker-0'), ('worker-0', 'chief-0'))],
                         ids='-'.join)
def test_a_task_without_data(form_and_tasks, tmp_path):
  """One file for two tasks, each of which takes its share of the files."""
  form, empty, other = form_and_tasks
  clusters.run(tmp_path, clusters.configs_of(
      'ps-0', 'chief-0', 'worker-0'), form=form,
               **{empty: {'batches': 0}, other: {'batches': 30}})
  clusters.check(tmp_path, 30)


@pytest.mark.sampled(12)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_a_metric_of_the_evaluator_stops_all(form, tmp_path):
  """`stop_if_no_decrease_hook` in chief and worker, as each has the hook."""
  clusters.run(tmp_path, clusters.configs_of(
      'ps-0', 'chief-0', 'worker-0', 'evaluator-0'), form=form, save_steps=20,
               rate=0.0, secs=0.01, stop_without_decrease=40)
  newest = tf.train.load_checkpoint(str(tmp_path / 'model'))
  steps = newest.get_tensor('global_step')
  assert steps == sum(
      int(path.read_text()) for path in tmp_path.glob('*.made'))


@pytest.mark.sampled(12)
@pytest.mark.parametrize('form', clusters.STRATEGIES)
def test_a_config_gets_its_strategy_later(form, tmp_path):
  """`config.replace(train_distribute=...)`, of a flag."""
  clusters.run(tmp_path, clusters.configs_of(
      'ps-0', 'chief-0', 'worker-0'), form=form, batches=20,
               replaced=True, **LATER)
  clusters.check(tmp_path, 60)


@pytest.mark.sampled(2)
@pytest.mark.parametrize('fewer, more', [
    ('chief-0', 'worker-0'), ('worker-0', 'chief-0')])
def test_a_synchronous_task_that_has_less_data(fewer, more, tmp_path):
  """A step needs all: the one with more data says what is missing, and ends."""
  with pytest.raises(AssertionError) as error:
    clusters.run(tmp_path, clusters.configs_of(fewer, more),
                 form='cross_shard_strategy', batches=30,
                 **{fewer: {'batches': 20}})
  name, status, log = error.value.args[0]
  assert (name, status) == (more, lost_peers.EXIT_STATUS)
  assert fewer.replace('-', ':') in log
  assert 'give all tasks the same number of batches' in log
  assert (tmp_path / f'{fewer}.made').read_text() == '20'


@pytest.mark.sampled(3)
@pytest.mark.parametrize('stopping', [
    ['chief-0', 'worker-0'], ['chief-0'], ['worker-0']], ids='-'.join)
def test_early_stopping_of_one_synchronous_task_stops_all(stopping, tmp_path):
  """TensorFlow's hook adds the wishes of all tasks up, in each step."""
  clusters.run(tmp_path, clusters.configs_of('chief-0', 'worker-0'),
               form='cross_shard_strategy', stop_early_after=10**6,
               **{task: {'stop_early_after': 20} for task in stopping})
  made = {int(path.read_text()) for path in tmp_path.glob('*.made')}
  newest = tf.train.load_checkpoint(str(tmp_path / 'model'))
  assert made == {newest.get_tensor('global_step')} and 20 <= min(made) <= 22


@pytest.mark.sampled(3)
@pytest.mark.parametrize('form', ['drop_stale', 'clip', 'elastic'])
def test_a_loop_that_each_task_leaves_by_itself(form, tmp_path):
  """No Estimator, and nobody waits: the chief saves when it leaves the loop."""
  clusters.run(tmp_path, clusters.configs_of('ps-0', 'chief-0', 'worker-0'),
               foreign=['ps-0'], program=(str(clusters.LOOP_PROGRAM),),
               form=form)
  made = sum(int(path.read_text()) for path in tmp_path.glob('*.made'))
  reader = tf.train.load_checkpoint(str(tmp_path / 'model'))
  assert 40 <= reader.get_tensor('global_step') <= made <= 43
  if form != 'elastic':  # A step of the other task may be half in the save.
    assert abs(reader.get_tensor('w') + reader.get_tensor('global_step')) <= 1


@pytest.mark.sampled(12)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_a_master_that_is_among_the_workers_too(form, tmp_path):
  """Its address stands twice: nobody starts `worker:0`, and its port is open.

  The chief waits 3 s without a step of the missing worker.
  """
  configs = clusters.configs_of('ps-0', 'master-0', 'worker-0', 'worker-1')
  del configs['worker-0']
  for config in configs.values():
    cluster = config['cluster']
    cluster['worker'][0], = cluster['master']
  clusters.run(tmp_path, configs, form=form, batches=20,
               limits={'finish_limit_secs': 6.0}, **{
                   'worker-1': {'batches': 40, 'after': ['master-0']}})
  clusters.check(tmp_path, 60)
  log = (tmp_path / 'master-0.log').read_text()
  assert 'worker:0' in log and 'worker:1 has' not in log


@pytest.mark.sampled(12)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_a_second_training_in_a_process_is_refused(form, tmp_path):
  """A program that trains, changes the data, and trains on."""
  with pytest.raises(AssertionError) as error:
    clusters.run(tmp_path, clusters.configs_of('ps-0', 'chief-0'), form=form,
                 batches=3, calls=2)
  name, status, log = error.value.args[0]
  assert (name, status) == ('ps-0', 1)
  assert 'must call `train_and_evaluate` once' in log
  assert 'Start the program of every task again' in log


@pytest.mark.sampled(12)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_a_session_config_of_the_program_waits_for_no_other_worker(
    form, tmp_path):
  """The worker never comes; so it is for a chief that restarts after it."""
  configs = clusters.configs_of('ps-0', 'chief-0', 'worker-0')
  del configs['worker-0']
  clusters.run(tmp_path, configs, form=form, batches=20, own_config=True,
               limits={'finish_limit_secs': 4.0})
  clusters.check(tmp_path, 20)


# More than TensorFlow would have by itself.
_THREADS = (os.cpu_count() or 1) + 3


@pytest.mark.sampled(12)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_threads_of_the_configuration_are_those_of_the_server(form, tmp_path):
  """That many ops of each task's server run at the same time."""
  tasks = 'ps-0', 'chief-0', 'worker-0'
  clusters.run(tmp_path, clusters.configs_of(*tasks), form=form,
               threads=_THREADS, batches=20, **LATER)
  clusters.check(tmp_path, 60)
  for task in tasks:
    made = tf1.ConfigProto.FromString(
        (tmp_path / f'{task}.server').read_bytes())
    assert made.inter_op_parallelism_threads == _THREADS
    assert made.intra_op_parallelism_threads == ends_program.INTRA_OP_THREADS
    assert made.rpc_options.compression_algorithm == ends_program.COMPRESSION


@pytest.mark.sampled(2)
@pytest.mark.parametrize('how', ['graphs_alone', 'early'])
@pytest.mark.parametrize('form', ['cross_shard_strategy'])
def test_so_are_those_of_shards_where_the_server_starts_later(
    form, how, tmp_path):
  """As the warning says that comes without: `server_options_test.py`."""
  clusters.run(tmp_path, clusters.configs_of('chief-0', 'worker-0'), form=form,
               threads=_THREADS, batches=20, **{how: True})
  newest = tf.train.load_checkpoint(str(tmp_path / 'model'))
  assert newest.get_tensor('global_step') == 20
