# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading Slurm's variables; tests/distributed has Slurm itself."""

import pytest
import tensorflow as tf

from tfplugin.bin.launches import slurm_step


def _environ(nodes='n[1-2]', counts='2(x2)', rank=0, **more):
  return {'SLURM_STEP_NODELIST': nodes, 'SLURM_STEP_TASKS_PER_NODE': counts,
          'SLURM_PROCID': str(rank), 'SLURM_JOB_ID': '1234',
          'SLURM_STEP_NUM_TASKS': '4', **more}


@pytest.mark.parametrize('nodes, counts, placed', [
    ('n1', '3', ['n1'] * 3),
    ('n[1-2]', '2(x2)', ['n1', 'n1', 'n2', 'n2']),
    ('n[2,10],m', '1(x2),2', ['n2', 'n10', 'm', 'm']),
    ('a-b[08-10,12]', '1(x4)', ['a-b08', 'a-b09', 'a-b10', 'a-b12']),
    ('n1.example.org,n[3-4]', '1,2,1', ['n1.example.org', 'n3', 'n3', 'n4']),
])
def test_nodes_and_counts_are_expanded(nodes, counts, placed):
  step = slurm_step.read(_environ(nodes, counts))
  assert step == (placed, 0, 1234)


@pytest.mark.parametrize('rank', range(4))
def test_equals_tensorflows_resolver_where_that_serves(monkeypatch, rank):
  environ = _environ(rank=rank)
  for name, value in environ.items():
    monkeypatch.setenv(name, value)
  # Sorted by name: the order of its jobs is another one.
  resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
      {'a_ps': 1, 'chief': 1, 'worker': 2}, port_base=100, gpus_per_node=2,
      gpus_per_task=1, auto_set_gpu=False)
  theirs = resolver.cluster_spec().as_dict()
  layout = slurm_step.layout(slurm_step.read(environ), 2, 1, False, port=100)
  # Its ports are those of a node, ours those of the run.
  nodes = [[address.partition(':')[0] for address in cluster]
           for jobs in (theirs, layout.cluster) for cluster in jobs.values()]
  assert nodes[:3] == nodes[3:] == [['n1'], ['n1'], ['n2', 'n2']]
  job, index = resolver.get_task_info()
  assert layout.own == [(job.replace('a_', ''), index)]


def test_each_process_has_a_task_and_all_have_one_cluster():
  found = [slurm_step.layout(
      slurm_step.read(_environ('n[1-3]', '2(x2),1', rank)), 1, 2, True)
           for rank in range(5)]
  # Job 1234: from 20000 + 34 * 100 on.
  assert all(layout.cluster == {
      'ps': ['n1:23400', 'n1:23401'], 'chief': ['n2:23402'],
      'worker': ['n2:23403']} for layout in found)
  assert [layout.who for layout in found] == [
      'ps-0', 'ps-1', 'chief-0', 'worker-0', 'evaluator-0']
  assert found[4].hosts['evaluator:0'] == 'n3'
  assert found[0].training_elsewhere == ['chief:0', 'worker:0']


def test_workers_are_what_the_others_leave():
  step = slurm_step.read(_environ())
  assert slurm_step.num_workers(step, 1, False) == 2
  assert slurm_step.num_workers(step, 1, True) == 1
  assert slurm_step.num_workers(step, 0, False, workers=3) == 3
  with pytest.raises(ValueError, match='needs 5 tasks or more: a chief, 3 ps, '
                     '1 evaluator.*Received: 4. Call srun with --ntasks=5'):
    slurm_step.num_workers(step, 3, True)
  with pytest.raises(ValueError, match='needs 3 tasks: a chief, 1 ps, 0 evaluat'
                     'or and 1 workers. Received: 4'):
    slurm_step.num_workers(step, 1, False, workers=1)


@pytest.mark.parametrize('name', ['STEP_NODELIST', 'STEP_TASKS_PER_NODE',
                                  'PROCID', 'JOB_ID'])
def test_without_slurm_it_says_how_to_call_it(name):
  with pytest.raises(ValueError, match=f'no SLURM_{name}. Call e.g. `srun'):
    slurm_step.read(_environ(**{f'SLURM_{name}': ''}))


@pytest.mark.parametrize('settings', [
    {'nodes': 'n[1'}, {'nodes': 'n[a-b]'}, {'counts': '2x2'}, {'nodes': ',n'}])
def test_what_slurm_does_not_write_is_refused(settings):
  with pytest.raises(ValueError, match='must be a list as Slurm writes it'):
    slurm_step.read(_environ(**settings))


def test_another_distribution_is_refused():
  # Dealt out in turn, task 1 is on the second node.
  slurm_step.read(_environ(rank=1, SLURMD_NODENAME='n1'))
  with pytest.raises(ValueError, match='task 1 on n2 of n1,n2. Call srun with '
                     '--distribution=block'):
    slurm_step.read(_environ(rank=1, SLURMD_NODENAME='n2'))
