# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The manifests that run the tasks on Kubernetes, as plain data.

Without an operator each job of the cluster is an Indexed Job. A headless
Service publishes its pods' names, `<run>-<job>-<index>`, and each pod's index
completes its TF_CONFIG. This needs Kubernetes 1.29 or later.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

from tfplugin.bin.launches import task_settings
from tfplugin.bin.processes import restarts
from tfplugin.distribute import cluster_config
from tfplugin.distribute.sessions import membership

KUBERNETES = 'kubernetes'
TF_JOB = 'tfjob'
COMPOSE = 'compose'
FORMS = (KUBERNETES, TF_JOB, COMPOSE)

PORT = 2222
_INDEX = 'TASK_INDEX'
# The annotation with the index of a pod in its Job.
_INDEX_FIELD = ("metadata.annotations['batch.kubernetes.io/"
                "job-completion-index']")
_LABEL = 'tfplugin-run'
_JOB_LABEL = 'tfplugin-job'
_NO_LABELS: Mapping[str, str] = types.MappingProxyType({})
_CONTAINER = 'program'
# TFJob knows its container and port by these names.
_TF_JOB_CONTAINER = 'tensorflow'
_TF_JOB_PORT = 'tfjob-port'
_REPLICAS = {'ps': 'PS', 'chief': 'Chief', 'worker': 'Worker',
             'evaluator': 'Evaluator'}
_TF_JOB_POLICIES = {restarts.NEVER: 'Never', restarts.ON_FAILURE: 'ExitCode',
                    restarts.ALWAYS: 'OnFailure'}
# The exit statuses of containers that a signal has ended.
_SIGNALED = range(129, 160)
_ALL = 'all'
GPU = 'nvidia.com/gpu'
# Kubernetes' amounts: 4, 500m, 8Gi, 0.5.
_QUANTITY = re.compile(r'\d+(\.\d+)?(m|[kMGTPE]|[KMGTPE]i)?')
# Pods' names, which contain this one, have 63 characters at most.
_NAME = re.compile(r'[a-z]([-a-z0-9]{0,38}[a-z0-9])?')


class Pods(NamedTuple):
  """The common settings of a run's pods.

  Attributes:
    grace_secs: For a pod's last checkpoint.
    claim: A PersistentVolumeClaim that every pod mounts; empty: none.
    mount: The path of the claim in the containers.
    claim_size: The size of a claim to create; empty: the claim exists.
    resources: Of each container, by job or 'all'.
    max_workers: How many workers may train where they join; None: a fixed
      number.
  """

  name: str
  image: str
  policy: restarts.RestartPolicy
  grace_secs: int
  claim: str = ''
  mount: str = ''
  claim_size: str = ''
  resources: Mapping[str, Mapping[str, str]] = types.MappingProxyType({})
  max_workers: int | None = None


def make_pods(name: str, image: str, policy: restarts.RestartPolicy,
              grace_secs: float, claim: str, claim_size: str = '',
              resources: Sequence[str] = (),
              max_workers: int | None = None) -> Pods:
  """Returns the settings; raises `ValueError` if Kubernetes would refuse one.

  `claim` is e.g. `runs=/runs`, the claim and its path; empty: none.
  `claim_size` is e.g. `20Gi`; empty: the claim exists. Each of `resources` is
  e.g. `worker=cpu=4,memory=8Gi,gpu=1`, for a job or 'all', once for each.
  """
  if not _NAME.fullmatch(name):
    raise ValueError('`run_name` must begin with a letter and have at most 40 '
                     f'small letters, digits and hyphens. Received: {name!r}')
  if not image:
    raise ValueError('`image` must name the container image that has the '
                     'program and tfplugin. Received: none. Add e.g. '
                     '--image=registry.example.org/me/program:1')
  claim_name, equals, mount = claim.partition('=')
  if claim and not (claim_name and equals and mount.startswith('/')):
    raise ValueError('`claim` must give a PersistentVolumeClaim and where it '
                     f'is mounted. Received: {claim!r}. Write e.g. '
                     '--claim=runs=/runs')
  if claim_size and not (claim and _QUANTITY.fullmatch(claim_size)):
    raise ValueError('`claim_size` must be a size, and needs `claim`. Received:'
                     f' {claim_size!r}. Write e.g. --claim=runs=/runs '
                     '--claim_size=20Gi')
  amounts: dict[str, dict[str, str]] = {}
  for text in resources:
    who, of_job = _resources(text)
    if who in amounts:
      raise ValueError(f'`resources` must be given once for {who}. Received: '
                       f'{text!r}, too. Write all amounts in one, e.g. '
                       f'--resources={who}=cpu=4,memory=8Gi')
    amounts[who] = of_job
  return Pods(name, image, policy, math.ceil(grace_secs), claim_name, mount,
              claim_size, amounts, max_workers)


def amounts_of(pods: Pods, job: str) -> Mapping[str, str]:
  """Returns the resources of a job's tasks; empty if none are set."""
  return pods.resources.get(job, pods.resources.get(_ALL, {}))


def _resources(text: str) -> tuple[str, dict[str, str]]:
  """Returns the job, or 'all', of a text, and its resources by name."""
  who, _, amounts = text.partition('=')
  pairs = [part.partition('=')[::2] for part in amounts.split(',')]
  if who not in (*_REPLICAS, _ALL) or not all(
      key and _QUANTITY.fullmatch(value) for key, value in pairs):
    raise ValueError('`resources` must name a job '
                     f'({", ".join((*_REPLICAS, _ALL))}) and amounts. '
                     f'Received: {text!r}. Write e.g. '
                     '--resources=worker=cpu=4,memory=8Gi,gpu=1')
  amounts: dict[str, str] = {}
  for key, value in pairs:
    key = GPU if key == 'gpu' else key
    if key in amounts:
      raise ValueError(f'`resources` must give {key} once. Received: {text!r}. '
                       'Leave out one of the two.')
    if key == GPU and not value.isdecimal():
      raise ValueError('`resources` must give GPUs as a whole number. Received:'
                       f' {text!r}. Write e.g. --resources={who}=gpu=1')
    amounts[key] = value
  return who, amounts


def kubernetes(starts: Sequence[task_settings.Start], pods: Pods) -> list[dict]:
  """Returns the manifests for Kubernetes without an operator; see the module.

  Workers that may join are a Deployment, for `kubectl scale`: each of its pods
  joins the run. Tasks of one job that do not start alike raise `ValueError`.
  """
  jobs = _by_job(starts)
  joining = jobs.pop('worker') if pods.max_workers else []
  cluster = {job: [f'{pods.name}-{job}-{index}.{pods.name}:{PORT}'
                   for index in range(len(members))]
             for job, members in jobs.items() if job != 'evaluator'}
  service = _object('v1', 'Service', pods.name, pods, {
      'clusterIP': 'None',
      # Tasks connect to each other before all are ready.
      'publishNotReadyAddresses': True,
      'selector': _labels(pods),
      'ports': [{'name': 'grpc', 'port': PORT}]})
  return [service, *_claims(pods), _network_policy(pods),
          *(_job(job, members, cluster, pods) for job, members in jobs.items()),
          *([_joining(joining, cluster, pods)] if joining else [])]


def tf_job(starts: Sequence[task_settings.Start], pods: Pods) -> list[dict]:
  """Returns Kubeflow's TFJob v1, whose operator writes TF_CONFIG."""
  specs = {}
  jobs = _by_job(starts)
  for job, members in jobs.items():
    container = _container(_TF_JOB_CONTAINER, members[0], [], pods)
    container['ports'] = [{'name': _TF_JOB_PORT, 'containerPort': PORT}]
    specs[_REPLICAS[job]] = {
        'replicas': len(members),
        'restartPolicy': _TF_JOB_POLICIES[pods.policy.rules[job]],
        'template': _template(container, {}, pods)}
  return [_object('kubeflow.org/v1', 'TFJob', pods.name, pods, {
      # At the chief's end the operator deletes pods that run: a program's
      # parameter servers may never end, but an evaluator has work to do.
      'runPolicy': {'cleanPodPolicy': ('None' if 'evaluator' in jobs else
                                       'Running'),
                    'backoffLimit': pods.policy.max_restarts},
      'tfReplicaSpecs': specs}), *_claims(pods), _network_policy(pods)]


def _by_job(starts: Sequence[task_settings.Start]
           ) -> dict[str, list[task_settings.Start]]:
  jobs: dict[str, list[task_settings.Start]] = {}
  for start in starts:
    jobs.setdefault(start.task.type, []).append(start)
    if start[1:] != jobs[start.task.type][0][1:]:
      raise ValueError(
          'With `manifest` all tasks of a job must have the same command, '
          'variables and CPUs. Received: settings of one task of '
          f'{start.task.type}. Give them to the job, {start.task.type}.')
  return jobs


def _joining(members: Sequence[task_settings.Start],
             cluster: Mapping[str, Sequence[str]], pods: Pods) -> dict:
  """Returns the Deployment of workers, whose numbers the run allots."""
  start = members[0]._replace(command=[
      'tfplugin-launch', f'--join={cluster["ps"][0]}',
      # Kubernetes restarts its pods.
      f'--restart={restarts.NEVER}', f'--grace_secs={pods.grace_secs}', '--',
      *members[0].command])
  return _object('apps/v1', 'Deployment', f'{pods.name}-worker', pods, {
      'replicas': len(members),
      'selector': {'matchLabels': {**_labels(pods), _JOB_LABEL: 'worker'}},
      'template': _template(_container(_CONTAINER, start, [], pods), {}, pods,
                            {_JOB_LABEL: 'worker'})})


def _job(job: str, members: Sequence[task_settings.Start],
         cluster: Mapping[str, Sequence[str]], pods: Pods) -> dict:
  config = cluster_config.encode(
      cluster, cluster_config.Task(job, 0),
      {membership.MAX_WORKERS: pods.max_workers} if pods.max_workers else {})
  variables = [
      {'name': _INDEX,
       'valueFrom': {'fieldRef': {'fieldPath': _INDEX_FIELD}}},
      {'name': 'TF_CONFIG',
       'value': config.replace('"index": 0', f'"index": $({_INDEX})')}]
  container = _container(_CONTAINER, members[0], variables, pods)
  container['ports'] = [{'containerPort': PORT}]
  rule = pods.policy.rules[job]
  spec: dict[str, Any] = {
      'completionMode': 'Indexed',
      'completions': len(members),
      'parallelism': len(members),
      'backoffLimitPerIndex': (
          0 if rule == restarts.NEVER else pods.policy.max_restarts)}
  if rule == restarts.ON_FAILURE:
    spec['podFailurePolicy'] = {'rules': [{
        'action': 'FailIndex',
        'onExitCodes': {'containerName': container['name'],
                        'operator': 'NotIn',
                        'values': worth_another_try()}}]}
  # A new pod, not a new container: `backoffLimitPerIndex` counts pods.
  spec['template'] = _template(
      container, {'restartPolicy': 'Never', 'subdomain': pods.name}, pods)
  return _object('batch/v1', 'Job', f'{pods.name}-{job}', pods, spec)


def worth_another_try() -> list[int]:
  """Returns the exit statuses of a container after which a restart may help."""
  return [status for status in range(1, 256)
          if not restarts.is_permanent(status) or
          status in _SIGNALED and not restarts.is_permanent(128 - status)]


def _container(name: str, start: task_settings.Start,
               variables: Sequence[Mapping[str, Any]], pods: Pods) -> dict:
  container = {
      'name': name,
      'image': pods.image,
      'command': [_verbatim(word) for word in start.command],
      'env': [*variables, *({'name': key, 'value': _verbatim(value)}
                            for key, value in start.variables.items())]}
  amounts = amounts_of(pods, start.task.type)
  if amounts:
    # Equal: a pod whose limits exceed its requests is evicted first.
    container['resources'] = {'requests': amounts, 'limits': amounts}
  if pods.claim:
    container['volumeMounts'] = [{'name': 'runs', 'mountPath': pods.mount}]
  return container


def _verbatim(text: str) -> str:
  """Returns text in which Kubernetes substitutes no variable."""
  return text.replace('$(', '$$(')


def _template(container: Mapping[str, Any], spec: Mapping[str, Any],
              pods: Pods, labels: Mapping[str, str] = _NO_LABELS) -> dict:
  spec = {**spec, 'terminationGracePeriodSeconds': pods.grace_secs,
          'containers': [container]}
  if pods.claim:
    spec['volumes'] = [{'name': 'runs', 'persistentVolumeClaim': {
        'claimName': pods.claim}}]
  return {'metadata': {'labels': {**_labels(pods), **labels}}, 'spec': spec}


def _claims(pods: Pods) -> list[dict]:
  """Returns the claim of the common volume, if it is to be created."""
  if not pods.claim_size:
    return []
  return [_object('v1', 'PersistentVolumeClaim', pods.claim, pods, {
      'accessModes': ['ReadWriteMany'],
      'resources': {'requests': {'storage': pods.claim_size}}})]


def _network_policy(pods: Pods) -> dict:
  """Returns a policy that admits connections from the run's tasks alone."""
  return _object('networking.k8s.io/v1', 'NetworkPolicy', pods.name, pods, {
      'podSelector': {'matchLabels': _labels(pods)},
      'policyTypes': ['Ingress'],
      'ingress': [{'from': [{'podSelector': {'matchLabels': _labels(pods)}}]}]})


def _object(version: str, kind: str, name: str, pods: Pods,
            spec: Mapping[str, Any]) -> dict:
  return {'apiVersion': version, 'kind': kind,
          'metadata': {'name': name, 'labels': _labels(pods)}, 'spec': spec}


def _labels(pods: Pods) -> dict[str, str]:
  return {_LABEL: pods.name}
