# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Each task that trains reads its part of the data, as in_a_cluster.md says.

Together the tasks read each element once, whatever form trains, and however the
launcher describes the cluster.
"""

import json
import pathlib

import pytest

from tests.distributed import clusters
from tests.docs import pages

pytestmark = [pytest.mark.distributed, pytest.mark.usefixtures('forking'),
              pytest.mark.timeout(150)]

PROGRAM = pathlib.Path(__file__).with_name('data_program.py')
_TASKS = ['chief-0', 'worker-0', 'worker-1', 'ps-0']
_NO_CHIEF = ['worker-0', 'worker-1', 'ps-0']
_SYNCHRONOUS = ['chief-0', 'worker-0']
_MASTER = ['master-0', 'worker-0', 'ps-0']


def _cluster(tasks, evaluator=False, numbers=(0, 1)):
  """Returns a TF_CONFIG for each task; `numbers` are those of the workers."""
  at, cluster = clusters.addresses(*tasks, 'evaluator-0'), {}
  for task in tasks:
    cluster.setdefault(task.partition('-')[0], []).append(at[task])
  if evaluator:
    cluster['evaluator'] = [at['evaluator-0']]
  if numbers != (0, 1):
    cluster['worker'] = dict(zip(map(str, numbers), cluster['worker']))
  configs = {}
  for task in (*tasks, *(['evaluator-0'] if evaluator else [])):
    job, _, index = task.partition('-')
    index = numbers[int(index)] if job == 'worker' else int(index)
    configs[f'{job}-{index}'] = {
        'cluster': cluster, 'task': {'type': job, 'index': index}}
  return configs


def _run(directory, form, configs):
  """Runs the cluster; returns what each task has read, and its `config`."""
  code, = (block for block in pages.blocks('start/in_a_cluster.md', 'python')
           if 'input_fn(config)' in block)
  clusters.run(directory, configs, program=(str(PROGRAM),),
               code=code, form=form)
  read = {path.stem: [int(line) for line in path.read_text().split()]
          for path in directory.glob('*.read')}
  told = {path.stem: json.loads(path.read_text())
          for path in directory.glob('*.config')}
  return read, told


def _check(read, told, num_training, chief='chief-0'):
  assert len(read) == len(told) == num_training
  # Each element once, and each task has its part.
  assert sorted(sum(read.values(), [])) == list(range(100))
  assert min(map(len, read.values())) >= 100 // num_training
  for name, config in told.items():
    assert config['is_chief'] == (name == chief)
    assert config['num_worker_replicas'] == num_training


@pytest.mark.sampled(4)
@pytest.mark.parametrize('evaluator', [False, True])
@pytest.mark.parametrize('form', [
    'none', *clusters.DECORATORS[:5], *clusters.STRATEGIES])
def test_chief_and_workers_read_each_element_once(form, evaluator, tmp_path):
  read, told = _run(tmp_path, form, _cluster(_TASKS, evaluator))
  _check(read, told, 3)
  assert {name: (config['task_type'], config['task_id'])
          for name, config in told.items()} == {
              'chief-0': ('chief', 0), 'worker-0': ('worker', 0),
              'worker-1': ('worker', 1)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize('form', clusters.STRATEGIES)
def test_the_first_worker_may_be_the_chief(form, tmp_path):
  _check(*_run(tmp_path, form, _cluster(_NO_CHIEF)), 2, 'worker-0')


@pytest.mark.sampled(2)
@pytest.mark.parametrize('tasks, chief', [
    (_SYNCHRONOUS, 'chief-0'), (['worker-0', 'worker-1'], 'worker-0')])
def test_synchronous_tasks_read_each_element_once(tasks, chief, tmp_path):
  _check(*_run(tmp_path, 'cross_shard_strategy', _cluster(tasks)), 2, chief)


@pytest.mark.sampled(2)
@pytest.mark.parametrize('form', ['drop_stale', 'drop_stale_strategy'])
def test_a_master_is_the_first(form, tmp_path):
  _check(*_run(tmp_path, form, _cluster(_MASTER)), 2, 'master-0')


@pytest.mark.sampled(2)
@pytest.mark.parametrize('form', ['drop_stale', 'drop_stale_strategy'])
def test_the_numbers_of_workers_need_not_begin_at_0(form, tmp_path):
  read, told = _run(tmp_path, form, _cluster(_TASKS, numbers=(3, 7)))
  assert sorted(told) == ['chief-0', 'worker-3', 'worker-7']
  assert sorted(sum(read.values(), [])) == list(range(100))
  assert min(map(len, read.values())) >= 33


@pytest.mark.sampled(2)
@pytest.mark.parametrize('config', [
    {}, {'cluster': {'chief': ['127.0.0.1:1']},
         'task': {'type': 'chief', 'index': 0}}])
@pytest.mark.parametrize('form', ['drop_stale', 'drop_stale_strategy'])
def test_a_process_alone_reads_all(form, config, tmp_path):
  read, told = _run(tmp_path, form, {'alone': config})
  (elements,), (told,) = read.values(), told.values()
  assert sorted(elements) == list(range(100))
  assert told['is_chief'] and told['num_worker_replicas'] == 1
