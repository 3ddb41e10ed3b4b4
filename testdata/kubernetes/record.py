# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Records the part of Kubernetes' and Kubeflow's schemas that manifests use.

From two distributions of PyPI, both under the Apache licence 2.0, unpacked:
kubernetes-validate has the JSON schemas that Kubernetes' own are turned into,
kubeflow-training the models that Kubeflow's are:

    python testdata/kubernetes/record.py DIRECTORY testdata/kubernetes
"""

import json
import pathlib
import re
import sys

VERSIONS = ('v1.29.0', 'v1.37.0')
# What a manifest of ours is made of; no other definition is kept.
DEFINITIONS = (
    'io.k8s.api.apps.v1.Deployment',
    'io.k8s.api.apps.v1.DeploymentSpec',
    'io.k8s.api.apps.v1.DeploymentStrategy',
    'io.k8s.api.apps.v1.RollingUpdateDeployment',
    'io.k8s.api.batch.v1.Job',
    'io.k8s.api.batch.v1.JobSpec',
    'io.k8s.api.batch.v1.PodFailurePolicy',
    'io.k8s.api.batch.v1.PodFailurePolicyOnExitCodesRequirement',
    'io.k8s.api.batch.v1.PodFailurePolicyRule',
    'io.k8s.api.core.v1.Container',
    'io.k8s.api.core.v1.ContainerPort',
    'io.k8s.api.core.v1.EnvVar',
    'io.k8s.api.core.v1.EnvVarSource',
    'io.k8s.api.core.v1.ObjectFieldSelector',
    'io.k8s.api.core.v1.PersistentVolumeClaim',
    'io.k8s.api.core.v1.PersistentVolumeClaimSpec',
    'io.k8s.api.core.v1.PersistentVolumeClaimVolumeSource',
    'io.k8s.api.core.v1.PodSpec',
    'io.k8s.api.core.v1.PodTemplateSpec',
    'io.k8s.api.core.v1.ResourceRequirements',
    'io.k8s.api.core.v1.Service',
    'io.k8s.api.core.v1.ServicePort',
    'io.k8s.api.core.v1.ServiceSpec',
    'io.k8s.api.core.v1.Volume',
    'io.k8s.api.core.v1.VolumeMount',
    'io.k8s.api.core.v1.VolumeResourceRequirements',
    'io.k8s.api.networking.v1.NetworkPolicy',
    'io.k8s.api.networking.v1.NetworkPolicyIngressRule',
    'io.k8s.api.networking.v1.NetworkPolicyPeer',
    'io.k8s.api.networking.v1.NetworkPolicySpec',
    'io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector',
    'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta',
)
# An amount: no object.
QUANTITY = 'io.k8s.apimachinery.pkg.api.resource.Quantity'
MODELS = {'tf_job': 'TFJob', 'tf_job_spec': 'TFJobSpec',
          'run_policy': 'RunPolicy', 'replica_spec': 'ReplicaSpec'}
_TYPES = {'int': 'integer', 'str': 'string', 'bool': 'boolean'}


def kubernetes(root, version):
  text = (root / 'kubernetes_validate' / 'kubernetes-json-schema' /
          f'{version}-local' / '_definitions.json').read_text()
  known = json.loads(text)['$defs']
  found = {_short(name): {
      'required': known[name].get('required', []),
      'properties': {key: _reduced(value) for key, value in
                     known[name]['properties'].items()}}
           for name in DEFINITIONS}
  return {**found, _short(QUANTITY): _reduced(known[QUANTITY])}


def _short(name):
  return name.rpartition('.')[2]


def _reduced(schema):
  """Keeps types, enumerations, items and references."""
  if '$ref' in schema:
    return {'ref': _short(schema['$ref'])}
  kept = {}
  types = schema.get('type')
  if types is not None:
    kept['type'] = [t for t in ([types] if isinstance(types, str) else types)
                    if t != 'null']
  if 'enum' in schema:
    kept['enum'] = schema['enum']
  for key in ('items', 'additionalProperties'):
    if isinstance(schema.get(key), dict):
      kept[key] = _reduced(schema[key])
  options = schema.get('oneOf') or schema.get('anyOf') or ()
  if options:
    kept['type'] = sorted({t for option in options
                           for t in _reduced(option).get('type', [])})
  return kept


def kubeflow(root):
  return {name: _model(root / 'kubeflow' / 'training' / 'models' /
                       f'kubeflow_org_v1_{file}.py')
          for file, name in MODELS.items()}


def _model(path):
  text = path.read_text()
  types, names = (
      dict(re.findall(r"'(\w+)': '([^']+)'", re.search(
          rf'    {table} = {{(.*?)}}', text, re.S)[1]))
      for table in ('openapi_types', 'attribute_map'))
  required = re.findall(r'Invalid value for `(\w+)`, must not be `None`', text)
  return {'required': sorted({names[key] for key in required}),
          'properties': {names[key]: _typed(kind)
                         for key, kind in types.items()}}


def _typed(kind):
  values = re.fullmatch(r'dict\(str, (\w+)\)', kind)
  if values:
    return {'type': ['object'], 'additionalProperties': _typed(values[1])}
  if kind in _TYPES:
    return {'type': [_TYPES[kind]]}
  return {'ref': re.sub(r'^(KubeflowOrg)?V1', '', kind)}


def main(root, target):
  schemas = {version: kubernetes(pathlib.Path(root), version)
             for version in VERSIONS}
  for definitions in schemas.values():
    definitions.update(kubeflow(pathlib.Path(root)))
  pathlib.Path(target, 'schemas.json').write_text(
      json.dumps(schemas, indent=1, sort_keys=True) + '\n')


if __name__ == '__main__':
  main(*sys.argv[1:])
