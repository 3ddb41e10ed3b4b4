# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clusters as launchers describe them: what each trains, and that all end.

The program is that of `ends_test.py`; each of its steps is in the checkpoint.
"""

import pytest
import tensorflow as tf

from tests.distributed import clusters

pytestmark = [pytest.mark.distributed, pytest.mark.usefixtures('forking'),
              pytest.mark.timeout(150)]

# Those without parameter servers; the last one has several hosts, too.
LOCAL_STRATEGIES = ['tower_strategy', 'clip_mirrored_strategy',
                    'cross_shard_strategy']
# As a launcher that starts the server of each task itself, in its process.
WITH_SERVER = f'''
import json, os, runpy, sys
import tensorflow as tf
config = json.loads(os.environ['TF_CONFIG'])
server = tf.distribute.Server(
    config['cluster'], job_name=config['task']['type'],
    task_index=config['task']['index'])
sys.argv[0] = {str(clusters.PROGRAM)!r}
sys.path.insert(0, {str(clusters.PROGRAM.parent)!r})
runpy.run_path(sys.argv[0], run_name='__main__')
'''


@pytest.mark.sampled(4)
@pytest.mark.parametrize('form', clusters.STRATEGIES)
def test_without_a_chief_the_first_worker_is_it(form, tmp_path):
  """TonY, and programs by hand; the ps is one of the platform's."""
  at = clusters.addresses('w0', 'w1', 'ps')
  cluster = {'worker': [at['w0'], at['w1']], 'ps': [at['ps']]}
  clusters.run(tmp_path, {
      f'{job}-{index}': {'cluster': cluster,
                         'task': {'type': job, 'index': index}}
      for job, index in (('ps', 0), ('worker', 0), ('worker', 1))},
       foreign=['ps-0'], form=form, batches=20, **{
           'worker-1': {'batches': 40, 'after': ['worker-0']}})
  clusters.check(tmp_path, 60)


@pytest.mark.sampled(4)
@pytest.mark.parametrize('form', clusters.STRATEGIES)
def test_without_a_chief_ps_and_evaluator_end(form, tmp_path):
  """Kubeflow without a `Chief` replica."""
  at = clusters.addresses('w0', 'w1', 'ps')
  cluster = {'worker': [at['w0'], at['w1']], 'ps': [at['ps']]}
  clusters.run(tmp_path, {
      f'{job}-{index}': {'cluster': cluster, 'environment': 'cloud',
                         'task': {'type': job, 'index': index}}
      for job, index in (('ps', 0), ('worker', 0), ('worker', 1),
                         ('evaluator', 0))}, form=form, batches=20, **{
           'worker-1': {'batches': 40, 'after': ['worker-0']}})
  clusters.check(tmp_path, 60)
  assert len(list((tmp_path / 'model/export/last').iterdir())) == 1


@pytest.mark.sampled(8)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_a_master_is_the_chief(form, tmp_path):
  """CloudML and SageMaker, which write more keys than TensorFlow reads."""
  at = clusters.addresses('master', 'worker', 'ps')
  cluster = {job: [address] for job, address in at.items()}
  clusters.run(tmp_path, {
      f'{job}-0': {'cluster': cluster, 'environment': 'cloud',
                   'task': {'type': job, 'index': '0', 'trial': '1'},
                   'job': {'scale_tier': 'CUSTOM'}}
      for job in ('ps', 'master', 'worker')}, form=form, batches=20,
       **{'worker-0': {'batches': 40, 'after': ['master-0']}})
  clusters.check(tmp_path, 60)


@pytest.mark.sampled(12)
@pytest.mark.parametrize('form', clusters.FORMS + LOCAL_STRATEGIES)
@pytest.mark.parametrize('config', [
    {'cluster': {'chief': ['localhost']},
     'task': {'type': 'chief', 'index': '0'}, 'environment': 'cloud'},
    {'cluster': {'master': ['algo-1:2222']},
     'task': {'type': 'master', 'index': 0}, 'environment': 'cloud'},
    {'cluster': {}, 'task': {'trial': '1'}},
], ids=['chief', 'master', 'none'])
def test_one_replica_trains_as_without_a_cluster(form, config, tmp_path):
  clusters.run(tmp_path, {'alone': config}, form=form, batches=20)
  clusters.check(tmp_path, 20)


@pytest.mark.sampled(12)
@pytest.mark.parametrize('max_steps', [20, 100], ids=['steps', 'input'])
@pytest.mark.parametrize('form', clusters.FORMS + LOCAL_STRATEGIES)
def test_a_chief_alone_may_have_an_evaluator(form, max_steps, tmp_path):
  """Kubeflow and Vertex, one replica; `max_steps` or the input ends it."""
  at = clusters.addresses('chief', 'evaluator')
  cluster = {job: [address] for job, address in at.items()}
  clusters.run(tmp_path, {
      f'{job}-0': {'cluster': cluster, 'environment': 'cloud',
                   'task': {'type': job, 'index': 0}}
      for job in ('chief', 'evaluator')}, form=form, batches=20,
       max_steps=max_steps)
  clusters.check(tmp_path, 20)
  # The evaluator's; TensorFlow's chief evaluates and exports nothing.
  assert len(list((tmp_path / 'model/export/last').iterdir())) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize('form', ['drop_stale', 'elastic_strategy'])
def test_the_evaluator_of_a_chief_alone_waits_for_its_report(form, tmp_path):
  """The chief opens no port: it trains longer than the limit for contact."""
  at, = clusters.addresses('chief').values()
  configs = {f'{job}-0': {'cluster': {'chief': [at]},
                          'task': {'type': job, 'index': 0}}
             for job in ('chief', 'evaluator')}
  # Without a checkpoint the evaluator would end with an error.
  clusters.run(tmp_path, {'chief-0': configs['chief-0']}, form=form, batches=5)
  (tmp_path / 'model/chief.finished').unlink()
  clusters.run(tmp_path, configs, form=form, batches=40, save_steps=5,
               limits={'contact_limit_secs': 0.5}, **{'chief-0': {'secs': 0.1}})
  exported, = (tmp_path / 'model/export/last').iterdir()
  newest, served = (tf.train.load_checkpoint(str(path)) for path in (
      tmp_path / 'model', exported / 'variables/variables'))
  assert newest.get_tensor('global_step') == 45
  assert served.get_tensor('w') == newest.get_tensor('w')


@pytest.mark.sampled(4)
@pytest.mark.parametrize('cluster', ['chief', 'none'])
@pytest.mark.parametrize('form', ['drop_stale', 'elastic_strategy'])
def test_an_evaluator_that_starts_after_the_end_exports(
    form, cluster, tmp_path):
  """The evaluator's cluster may have no other task, with a strategy."""
  at = clusters.addresses('chief', 'evaluator')
  of_chief = {'chief': [at['chief']]}
  of_evaluator = {'evaluator': [at['evaluator']]} if (
      cluster == 'none' and form in clusters.STRATEGIES) else of_chief
  for job, jobs in (('chief', of_chief), ('evaluator', of_evaluator)):
    clusters.run(tmp_path, {f'{job}-0': {
        'cluster': jobs, 'task': {'type': job, 'index': 0}}}, form=form,
         batches=20, limits={'contact_limit_secs': 3.0})
  assert len(list((tmp_path / 'model/export/last').iterdir())) == 1


@pytest.mark.sampled(8)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_jobs_that_do_not_train_are_left_out(form, tmp_path):
  """Kubeflow's evaluator in the cluster, TonY's notebook and TensorBoard."""
  at = clusters.addresses('chief', 'worker', 'ps', 'evaluator')
  cluster = {**{job: [address] for job, address in at.items()},
             'tensorboard': ['somewhere:1'], 'notebook': ['elsewhere:1']}
  clusters.run(tmp_path, {
      f'{job}-0': {'cluster': cluster, 'environment': 'cloud',
                   'task': {'type': job, 'index': '0'}}
      for job in ('ps', 'chief', 'worker', 'evaluator')}, form=form, batches=20,
       **{'worker-0': {'batches': 40, 'after': ['chief-0']}})
  clusters.check(tmp_path, 60)
  assert len(list((tmp_path / 'model/export/last').iterdir())) == 1


@pytest.mark.sampled(8)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_workers_have_the_numbers_that_they_are_given(form, tmp_path):
  """A sparse ClusterSpec, which names a worker by its number."""
  at = clusters.addresses('chief', 'worker', 'ps')
  cluster = {'chief': [at['chief']], 'worker': {'3': at['worker']},
             'ps': [at['ps']]}
  clusters.run(tmp_path, {
      f'{job}-{index}': {'cluster': cluster,
                         'task': {'type': job, 'index': index}}
      for job, index in (('ps', 0), ('chief', 0), ('worker', 3))}, form=form,
       batches=20, **{'worker-3': {'batches': 40, 'after': ['chief-0']}})
  clusters.check(tmp_path, 60)


@pytest.mark.sampled(8)
@pytest.mark.parametrize('form', clusters.FORMS)
def test_servers_that_a_launcher_has_started_are_used(form, tmp_path):
  """tf-yarn's `"environment": "google"`."""
  at = clusters.addresses('chief', 'worker', 'ps')
  cluster = {job: [address] for job, address in at.items()}
  clusters.run(tmp_path, {
      f'{job}-0': {'cluster': cluster, 'environment': 'google',
                   'task': {'type': job, 'index': 0}}
      for job in ('ps', 'chief', 'worker')}, foreign=['ps-0'],
       program=('-c', WITH_SERVER), form=form, batches=20,
       **{'worker-0': {'batches': 40, 'after': ['chief-0']}})
  clusters.check(tmp_path, 60)


# Clusters without parameter servers, each process by its task.
_SYNCHRONOUS = {
    'no chief': (['worker-0', 'worker-1'], {}),
    'master': (['master-0', 'worker-0'], {'environment': 'cloud',
                                          'job': {'scale_tier': 'CUSTOM'}}),
    'numbers': (['chief-0', 'worker-0'], {}),
    'others': (['chief-0', 'worker-0', 'evaluator-0'], {}),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize('name', _SYNCHRONOUS)
def test_shards_of_several_hosts_have_the_same_forms(name, tmp_path):
  tasks, others = _SYNCHRONOUS[name]
  at, cluster = clusters.addresses(*tasks), {}
  for task in tasks:
    job, _, index = task.partition('-')
    cluster.setdefault(job, {})[index] = at[task]
  if name != 'numbers':
    cluster = {job: list(of_job.values()) for job, of_job in cluster.items()}
  if name == 'others':
    cluster = {**cluster, 'tensorboard': ['somewhere:1']}
  clusters.run(tmp_path, {
      task: {'cluster': cluster, **others, 'task': {
          'type': task.partition('-')[0], 'index': task.partition('-')[2]}}
      for task in tasks}, form='cross_shard_strategy', batches=20)
  newest = tf.train.latest_checkpoint(str(tmp_path / 'model'))
  # In each step every task trains on a batch.
  assert tf.train.load_checkpoint(newest).get_tensor('global_step') == 20


def test_towers_of_one_process_of_several_are_refused_by_name(tmp_path):
  at = clusters.addresses('chief', 'worker', 'ps')
  cluster = {job: [address] for job, address in at.items()}
  with pytest.raises(AssertionError):
    clusters.run(tmp_path, {'chief-0': {
        'cluster': cluster, 'task': {'type': 'chief', 'index': 0}}},
         form='tower_strategy', batches=20)
  assert 'TowerStrategy must train in a process alone' in (
      tmp_path / 'chief-0.log').read_text()
