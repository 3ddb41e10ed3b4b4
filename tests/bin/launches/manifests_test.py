# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of manifests, against the schemas of Kubernetes and Kubeflow."""
# BUILD data: //testdata

import json
import pathlib

import pytest

from tfplugin.bin.launches import launch_options
from tfplugin.bin.launches import manifests
from tfplugin.bin.launches import task_settings
from tfplugin.bin.processes import restarts
from tfplugin.distribute import cluster_config

_SCHEMAS = json.loads((
    pathlib.Path(__file__).absolute().parents[3] /
    'testdata/kubernetes/schemas.json').read_text(encoding='utf-8'))
_PYTHON_TYPES = {'string': str, 'number': float, 'integer': int,
                 'boolean': bool, 'object': dict, 'array': list}
_RULES = 'chief=never,ps=always,worker=on_failure,evaluator=on_failure'


def _starts(faults='', **settings):
  tasks = cluster_config.tasks_of(
      {'ps': ['', ''], 'chief': [''], 'worker': ['', '', '']}, True)
  return task_settings.make_starts(
      tasks, ('python', 'a.py'), task_settings.parse(**settings), faults)


def _pods(claim='runs=/runs', claim_size='', resources=(), max_workers=None):
  policy = restarts.RestartPolicy(restarts.parse(_RULES), max_restarts=4)
  return manifests.make_pods('mnist', 'me/program:1', policy, 30.0, claim,
                             claim_size, resources, max_workers)


def _by_name(documents):
  return {(d['kind'], d['metadata']['name']): d for d in documents}


def _problems(value, schema, definitions, path):
  """Yields where a value is not of a schema; what is not recorded is none."""
  if 'ref' in schema:
    if schema['ref'] not in definitions:
      yield f'{path}: {schema["ref"]} is not recorded'
      return
    schema = {'type': ['object'], **definitions[schema['ref']]}
  yield from _problems_of_type(value, schema, path)
  for number, item in enumerate(value if isinstance(value, list) else ()):
    yield from _problems(item, schema['items'], definitions,
                         f'{path}[{number}]')
  for key, item in value.items() if isinstance(value, dict) else ():
    inner = schema.get('properties', {}).get(
        key, schema.get('additionalProperties'))
    if inner is None:
      yield f'{path}: {key} is unknown'
    else:
      yield from _problems(item, inner, definitions, f'{path}.{key}')


def _problems_of_type(value, schema, path):
  for name in schema.get('required', ()):
    if name not in value:
      yield f'{path}: {name} is required'
  types = tuple(_PYTHON_TYPES[name] for name in schema.get('type', ()))
  if types and (not isinstance(value, types) or
                isinstance(value, bool) and bool not in types):
    yield f'{path}: {value!r} is none of {schema["type"]}'
  if 'enum' in schema and value not in schema['enum']:
    yield f'{path}: {value!r} is none of {schema["enum"]}'


@pytest.mark.parametrize('version', sorted(_SCHEMAS))
@pytest.mark.parametrize('make', [manifests.kubernetes, manifests.tf_job])
def test_manifests_are_of_the_published_schema(version, make):
  resources = ['all=cpu=500m,memory=4Gi', 'worker=cpu=4,memory=8Gi,gpu=1']
  for pods in (_pods(''), _pods(), _pods('runs=/runs', '20Gi', resources),
               _pods(max_workers=8)):
    for document in make(_starts(), pods):
      assert not list(_problems(
          document, {'ref': document['kind']}, _SCHEMAS[version],
          document['kind']))


@pytest.mark.parametrize('wrong, problem', [
    ({'kind': 'Jobs'}, "'Jobs' is none of"), ({'color': 'red'}, 'is unknown'),
    ({'spec': {}}, 'template is required'),
    ({'metadata': {'name': 1}}, '1 is none of')])
def test_the_check_finds_what_is_wrong(wrong, problem):
  document = {**manifests.kubernetes(_starts(), _pods())[-1], **wrong}
  found = list(_problems(document, {'ref': 'Job'}, _SCHEMAS['v1.29.0'], ''))
  assert any(problem in text for text in found)


@pytest.mark.parametrize('make', [manifests.kubernetes, manifests.tf_job])
def test_resources_are_of_a_job_or_of_all(make):
  text = json.dumps(make(_starts(), _pods(resources=[
      'all=cpu=500m,memory=4Gi', 'worker=cpu=4,memory=8Gi,gpu=1'])))
  # Chief, ps and evaluator; the workers.
  for amounts, count in (('{"cpu": "500m", "memory": "4Gi"}', 3), (
      '{"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}', 1)):
    assert text.count(
        f'"resources": {{"requests": {amounts}, "limits": {amounts}}}') == count
  assert '"resources"' not in json.dumps(make(_starts(), _pods()))


@pytest.mark.parametrize('make', [manifests.kubernetes, manifests.tf_job])
def test_a_claim_with_a_size_is_made_too(make):
  kinds = [d['kind'] for d in make(_starts(), _pods())]
  assert 'PersistentVolumeClaim' not in kinds
  claim = _by_name(make(_starts(), _pods('runs=/runs', '20Gi')))[
      'PersistentVolumeClaim', 'runs']
  assert claim['spec'] == {'accessModes': ['ReadWriteMany'],
                           'resources': {'requests': {'storage': '20Gi'}}}


@pytest.mark.parametrize('settings, words', [
    ({'resources': ['worker']}, '`resources` must name a job'),
    ({'resources': ['boss=cpu=1']}, "'boss=cpu=1'"),
    ({'resources': ['ps=cpu=many']}, "'ps=cpu=many'"),
    ({'resources': ['ps=cpu=4', 'ps=memory=8Gi']},
     "once for ps.*'ps=memory=8Gi'.*--resources=ps=cpu=4,memory=8Gi"),
    ({'resources': ['ps=cpu=4,cpu=8']}, "cpu once.*'ps=cpu=4,cpu=8'"),
    ({'resources': ['ps=gpu=1,nvidia.com/gpu=2']}, 'gpu once'),
    ({'resources': ['ps=gpu=500m']}, "whole number.*'ps=gpu=500m'"),
    ({'resources': ['ps=gpu=0.5']}, "whole number.*'ps=gpu=0.5'"),
    ({'claim_size': '20 GB'}, '`claim_size` must be a size'),
    ({'claim': '', 'claim_size': '20Gi'}, 'needs `claim`')])
def test_amounts_that_kubernetes_would_not_take_are_refused(settings, words):
  with pytest.raises(ValueError, match=words):
    _pods(**settings)


def test_a_fraction_of_a_second_of_grace_is_not_cut_to_none():
  policy = restarts.RestartPolicy(restarts.parse(_RULES))
  assert manifests.make_pods('mnist', 'i', policy, 0.4, '').grace_secs == 1


def test_the_names_of_tf_config_are_those_of_the_pods():
  documents = _by_name(manifests.kubernetes(_starts(), _pods()))
  service = documents['Service', 'mnist']
  assert service['spec']['clusterIP'] == 'None'
  cluster = {
      'ps': ['mnist-ps-0.mnist:2222', 'mnist-ps-1.mnist:2222'],
      'chief': ['mnist-chief-0.mnist:2222'],
      'worker': [f'mnist-worker-{i}.mnist:2222' for i in range(3)]}
  for job, size in (('ps', 2), ('chief', 1), ('worker', 3), ('evaluator', 1)):
    spec = documents['Job', f'mnist-{job}']['spec']
    # Kubernetes: pod i of Job J has the host name J-i, below its subdomain.
    assert (spec['completionMode'], spec['completions'],
            spec['parallelism']) == ('Indexed', size, size)
    assert spec['template']['spec']['subdomain'] == 'mnist'
    labels = spec['template']['metadata']['labels']
    assert labels == service['spec']['selector']
    index, config = spec['template']['spec']['containers'][0]['env']
    assert index['valueFrom']['fieldRef']['fieldPath'] == (
        "metadata.annotations['batch.kubernetes.io/job-completion-index']")
    for number in range(size):
      # What Kubernetes makes of a variable that was given before.
      text = config['value'].replace('$(TASK_INDEX)', str(number))
      assert cluster_config.decode(text) == (
          cluster, cluster_config.Task(job, number))


def test_pods_start_again_as_the_policy_says():
  documents = _by_name(manifests.kubernetes(_starts(), _pods()))
  limits, rules = {}, {}
  for job in ('chief', 'ps', 'worker'):
    spec = documents['Job', f'mnist-{job}']['spec']
    limits[job] = spec['backoffLimitPerIndex']
    rules[job] = spec.get('podFailurePolicy')
    assert spec['template']['spec']['restartPolicy'] == 'Never'
  assert limits == {'chief': 0, 'ps': 4, 'worker': 4}
  assert rules['chief'] is rules['ps'] is None
  rule, = rules['worker']['rules']
  assert rule['action'] == 'FailIndex'
  assert rule['onExitCodes']['operator'] == 'NotIn'
  values = rule['onExitCodes']['values']
  assert {75, 130, 137, 138, 143} <= set(values)
  assert not {1, 2, 126, 127, 128, 139} & set(values)
  assert values == sorted(set(values)) and len(values) <= 255


def test_a_tf_job_has_the_names_that_its_operator_looks_for():
  job = _by_name(manifests.tf_job(_starts(), _pods()))['TFJob', 'mnist']
  specs = job['spec']['tfReplicaSpecs']
  assert {name: (spec['replicas'], spec['restartPolicy'])
          for name, spec in specs.items()} == {
              'PS': (2, 'OnFailure'), 'Chief': (1, 'Never'),
              'Worker': (3, 'ExitCode'), 'Evaluator': (1, 'ExitCode')}
  for spec in specs.values():
    container, = spec['template']['spec']['containers']
    assert container['name'] == 'tensorflow'
    assert container['ports'] == [
        {'name': 'tfjob-port', 'containerPort': 2222}]
    assert all(entry['name'] != 'TF_CONFIG' for entry in container['env'])


@pytest.mark.parametrize('has_evaluator, policy', [
    (True, 'None'), (False, 'Running')])
def test_the_last_evaluation_is_not_cut_off(has_evaluator, policy):
  starts = [start for start in _starts()
            if has_evaluator or start.task.type != 'evaluator']
  job = _by_name(manifests.tf_job(starts, _pods()))['TFJob', 'mnist']
  assert job['spec']['runPolicy']['cleanPodPolicy'] == policy


@pytest.mark.parametrize('make, name', [
    (manifests.kubernetes, ('Job', 'mnist-ps')),
    (manifests.tf_job, ('TFJob', 'mnist'))])
def test_what_jobs_have_for_themselves(make, name):
  document = _by_name(make(_starts(
      'kill ps:0 at step 1', command=['ps=python ps.py'], env=['ps=A=$(B)']),
                           _pods()))[name]
  spec = document['spec'].get('template') or document['spec'][
      'tfReplicaSpecs']['PS']['template']
  container, = spec['spec']['containers']
  assert container['command'] == ['python', 'ps.py']
  # `$$(` is Kubernetes' way to write `$(`.
  assert {'name': 'A', 'value': '$$(B)'} in container['env']
  assert {'name': 'TFPLUGIN_FAULTS', 'value': 'kill ps:0 at step 1'} in (
      container['env'])
  assert spec['spec']['terminationGracePeriodSeconds'] == 30
  assert container['volumeMounts'][0]['mountPath'] == '/runs'
  assert spec['spec']['volumes'][0]['persistentVolumeClaim'] == {
      'claimName': 'runs'}


def test_tasks_of_a_job_that_differ_are_refused():
  with pytest.raises(ValueError, match='one task of worker. Give them to'):
    manifests.kubernetes(_starts(env=['worker:1=A=1']), _pods())


def test_nobody_else_reaches_the_tasks():
  for make in (manifests.kubernetes, manifests.tf_job):
    spec = _by_name(make(_starts(), _pods()))['NetworkPolicy', 'mnist']['spec']
    who = {'matchLabels': {'tfplugin-run': 'mnist'}}
    assert spec == {'podSelector': who, 'policyTypes': ['Ingress'],
                    'ingress': [{'from': [{'podSelector': who}]}]}


@pytest.mark.parametrize('name, image, claim, message', [
    ('Mnist', 'a', '', '`run_name` must begin.*Mnist'),
    ('m' * 41, 'a', '', '`run_name` must begin'),
    ('m-', 'a', '', '`run_name` must begin'),
    ('m', '', '', '`image` must name.*--image='),
    ('m', 'a', 'runs', '`claim` must give.*--claim=runs=/runs'),
    ('m', 'a', 'runs=there', '`claim` must give'),
    ('m', 'a', '=/runs', '`claim` must give')])
def test_what_kubernetes_would_not_take_is_refused(name, image, claim, message):
  with pytest.raises(ValueError, match=message):
    manifests.make_pods(name, image, restarts.RestartPolicy(), 30.0, claim)


def test_workers_that_may_join_are_a_deployment_to_scale():
  documents = _by_name(manifests.kubernetes(_starts(), _pods(max_workers=8)))
  assert ('Job', 'mnist-worker') not in documents
  spec = documents['Deployment', 'mnist-worker']['spec']
  assert spec['replicas'] == 3
  template = spec['template']
  # A pod of a Deployment has the labels that it selects, and the run's.
  labels = template['metadata']['labels']
  assert spec['selector']['matchLabels'].items() <= labels.items()
  assert documents['Service', 'mnist']['spec']['selector'].items() < (
      labels.items())
  container, = template['spec']['containers']
  assert container['command'] == [
      'tfplugin-launch', '--join=mnist-ps-0.mnist:2222', '--restart=never',
      '--grace_secs=30', '--', 'python', 'a.py']
  assert container['env'] == []
  # The others wait for no worker, and know that some may join.
  for job in ('ps', 'chief', 'evaluator'):
    container, = documents['Job', f'mnist-{job}']['spec']['template']['spec'][
        'containers']
    config = json.loads(container['env'][1]['value'].replace(
        '$(TASK_INDEX)', '0'))
    assert config['max_workers'] == 8 and 'worker' not in config['cluster']
    # No pod of the Deployment is taken for one of the Jobs'.
    assert spec['selector']['matchLabels']['tfplugin-job'] == 'worker'


@pytest.mark.parametrize('settings', [
    {'manifest': 'compose'}, {'manifest': 'tfjob'}, {'workers': 0},
    {'restart': 'never'}])
def test_a_range_that_a_manifest_cannot_have_is_refused(settings):
  with pytest.raises(ValueError, match='`workers` with a range needs --mani'):
    launch_options.LaunchOptions(
        ('python', 'a.py'), **{
            'manifest': 'kubernetes', 'image': 'i', 'workers': 1,
            'restart': 'on_failure', 'max_workers': 8, **settings})
