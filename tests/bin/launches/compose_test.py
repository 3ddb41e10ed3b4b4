# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A Compose file has a service for each task, that finds the others."""
# BUILD data: //:sources
# BUILD data: //examples/cluster

import pathlib
import re

import pytest

from tfplugin.bin.launches import compose
from tfplugin.bin.launches import manifests
from tfplugin.bin.launches import task_settings
from tfplugin.bin.processes import restarts
from tfplugin.distribute import cluster_config

_ROOT = pathlib.Path(__file__).absolute().parents[3]


def _document(claim='runs=/runs', claim_size='', resources=(), max_restarts=4,
              **settings):
  tasks = cluster_config.tasks_of(
      {'ps': [''], 'chief': [''], 'worker': ['', '']}, True)
  policy = restarts.RestartPolicy(
      restarts.parse('chief=never,ps=always,worker=on_failure,evaluator=never'),
      max_restarts=max_restarts)
  document, = compose.compose(
      task_settings.make_starts(tasks, ('python', 'a.py', '$HOME'),
                                task_settings.parse(**settings), ''),
      manifests.make_pods('mnist', 'me/program:1', policy, 30.0, claim,
                          claim_size, resources))
  return document


def test_each_task_finds_the_others_by_the_names_of_the_services():
  document = _document()
  assert list(document['services']) == [
      'ps-0', 'chief-0', 'worker-0', 'worker-1', 'evaluator-0']
  cluster = {'ps': ['ps-0:2222'], 'chief': ['chief-0:2222'],
             'worker': ['worker-0:2222', 'worker-1:2222']}
  for name, service in document['services'].items():
    job, _, index = name.partition('-')
    assert cluster_config.decode(service['environment']['TF_CONFIG']) == (
        cluster, cluster_config.Task(job, int(index)))
    assert service['image'] == 'me/program:1'
    assert service['stop_grace_period'] == '30s'
    assert service['volumes'] == ['runs:/runs']
  assert document['volumes'] == {'runs': {}}


def test_tasks_start_again_and_words_stay_as_they_are():
  services = _document(env=['ps=A=$(B)'])['services']
  assert {name: service['restart'] for name, service in services.items()} == {
      'ps-0': 'on-failure:4', 'chief-0': 'no', 'worker-0': 'on-failure:4',
      'worker-1': 'on-failure:4', 'evaluator-0': 'no'}
  assert services['ps-0']['command'] == ['python', 'a.py', '$$HOME']
  assert services['ps-0']['environment']['A'] == '$$(B)'


def test_no_restart_is_no_limit_of_nought():
  services = _document(max_restarts=0)['services']
  assert {service['restart'] for service in services.values()} == {'no'}


def test_amounts_are_those_of_compose():
  services = _document(resources=[
      'all=cpu=500m,memory=4Gi', 'worker=cpu=4,memory=1G,gpu=2'])['services']
  assert services['ps-0']['deploy']['resources'] == {
      'limits': {'cpus': '0.5', 'memory': f'{4 * 2**30}b'}}
  assert services['worker-1']['deploy']['resources'] == {
      'limits': {'cpus': '4', 'memory': '1000000000b'},
      'reservations': {'devices': [
          {'driver': 'nvidia', 'count': 2, 'capabilities': ['gpu']}]}}


def test_a_service_without_gpus_reserves_none():
  services = _document(resources=['all=cpu=1,gpu=1', 'ps=cpu=2,gpu=0'])[
      'services']
  assert services['ps-0']['deploy']['resources'] == {'limits': {'cpus': '2'}}
  assert 'reservations' in services['chief-0']['deploy']['resources']


@pytest.mark.parametrize('settings, words', [
    ({'claim_size': '20Gi'}, '`claim_size` has no effect.*20Gi'),
    ({'resources': ['all=hugepages=4']}, "Received: 'hugepages'"),
    ({'resources': ['all=cpu=0m']}, "more than 0 CPUs. Received: '0m'"),
    ({'resources': ['all=memory=500m']}, "at least 1 byte.*Received: '500m'")])
def test_what_compose_has_not_is_refused(settings, words):
  with pytest.raises(ValueError, match=words):
    _document(**settings)


def test_the_image_holds_the_package_and_the_program_of_the_page():
  dockerfile, setup, page = (
      (_ROOT / file).read_text(encoding='utf-8') for file in (
          'examples/cluster/Dockerfile', 'setup.py', 'docs/launcher.md'))
  extras = re.search(r"pip install .*'\.\[(.*)\]'", dockerfile).group(1)
  assert all(f"'{extra}': " in setup for extra in extras.split(','))
  example, = re.findall(r'^COPY (examples/\S+) \.$', dockerfile, re.M)
  assert (_ROOT / example).is_file()
  directory = re.findall(r'^WORKDIR (\S+)$', dockerfile, re.M)[-1]
  path = f'{directory}/{pathlib.Path(example).name}'
  assert f'CMD ["python", "{path}", ' in dockerfile
  assert f'-- python {path} ' in page
