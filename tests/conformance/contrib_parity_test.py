# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares tfplugin with tf.contrib, scenario by scenario.

The numbers in testdata/contrib_goldens were recorded from the originals on
TensorFlow 1.15.5. A scenario in which an original was wrong is listed in
corrections.py there, with the reason and the right value by arithmetic.
"""
# BUILD data: //:sources

from __future__ import annotations

import copy
import pathlib
import types

import numpy as np
import pytest
import tensorflow as tf

from testdata.contrib_goldens import corrections
from testdata.contrib_goldens import drive
from testdata.contrib_goldens import goldens
from testdata.contrib_goldens import scenarios
from tfplugin import _tf_internals
from tfplugin import contrib

tf1 = tf.compat.v1

SCENARIOS = {each['name']: each for each in scenarios.all_scenarios()}
_GOLDENS = goldens.read()
_CORRECTIONS = corrections.corrections()

# A few roundings per step, at most six steps, of numbers up to 4; kernels of
# the two versions of TensorFlow round pow and rsqrt differently.
_EPSILONS = 64


def make_api():
  """Returns what the scenarios use of us, and an Estimator."""
  return types.SimpleNamespace(
      opt=contrib.opt, estimator=contrib.estimator, tpu=contrib.tpu,
      tf_estimator=tf.estimator,
      shard_context=_tf_internals.tpu_function.tpu_shard_context)


@pytest.fixture(name='api')
def _api():
  return make_api()


def _differences(expected, actual, epsilon, path=''):
  """Lists where `actual` is not as expected; more keys are no difference."""
  if isinstance(expected, dict) and isinstance(actual, dict):
    return [found for key in expected for found in (
        _differences(expected[key], actual[key], epsilon, f'{path}/{key}')
        if key in actual else [f'{path}/{key} is missing'])]
  lists = isinstance(expected, list) and isinstance(actual, list)
  if lists and not corrections.is_open(expected) and (
      len(expected) != len(actual)):
    return [f'{path}: expected {expected}, got {actual}']
  if lists:
    return [found for i, (one, other) in enumerate(zip(expected, actual))
            for found in _differences(one, other, epsilon, f'{path}/{i}')]
  numbers = all(isinstance(x, (int, float, np.number))
                for x in (expected, actual))
  same = (_roundings(expected, actual, epsilon) <= _EPSILONS if numbers
          else expected == actual)
  return [] if same else [f'{path}: expected {expected!r}, got {actual!r}']


def _roundings(expected, actual, epsilon):
  # As Python's floats: numpy 2 would round the expected one to float32.
  expected, actual = float(expected), float(actual)
  return abs(expected - actual) / (epsilon * max(1.0, abs(expected)))


def _largest(expected, actual, epsilon):
  """Returns the largest difference of two numbers, in roundings."""
  pairs = []
  if isinstance(expected, dict):
    pairs = [(value, actual[key]) for key, value in expected.items()
             if key in actual]
  elif isinstance(expected, list):
    pairs = zip(expected, actual)
  elif isinstance(expected, (int, float)):
    return _roundings(expected, actual, epsilon)
  return max((_largest(*pair, epsilon) for pair in pairs), default=0.0)


def measure():
  """Returns how many scenarios there are, and the largest difference."""
  api, largest = make_api(), 0.0
  for name, scenario in SCENARIOS.items():
    result, pairs = run(name, api)
    largest = max(largest, *(_largest(expected, result, _epsilon(scenario))
                             for expected, _ in pairs))
  return len(SCENARIOS), largest


def _epsilon(scenario) -> float:
  types_used = {scenario.get('dtype', 'float32')} | {
      each.get('dtype', 'float32') for each in scenario.get('model', [])}
  # Summaries, and losses of `tf1.losses`, are float32 whatever the model is.
  narrow = types_used == {'float32'} or scenario['wrapper'] in (
      'drop_stale', 'towers')
  return float(np.finfo('float32' if narrow else 'float64').eps)


def _adapted(scenario, golden):
  """Leaves out of a golden what no scenario has, for one stated reason."""
  golden = copy.deepcopy(golden)
  golden.pop('message', None)  # Errors have other words.
  if scenario['wrapper'] == 'elastic_average' and (
      scenario['settings']['rho'] == 0.0):
    # Without a penalty no worker keeps a copy of the centre.
    for step in golden.get('steps', []):
      for key in [key for key in step if key.startswith('local_center/')]:
        del step[key]
    golden['local_names'] = [
        name for name in golden.get('local_names', [])
        if not name.startswith('local_center_variable/')]
  return golden


def _compared(result):
  """Leaves out of a result the local variables that are tfplugin's own."""
  result = copy.deepcopy(result)
  result['local_names'] = [
      name for name in result.get('local_names', [])
      if not name.startswith('DropStaleGradient/num_')]
  return result


def run(name, api):
  """Runs a scenario.

  Returns:
    What it came to, and pairs of what that must hold and why.
  """
  scenario, golden = SCENARIOS[name], _GOLDENS[name]
  if name in _CORRECTIONS:
    scenario = dict(scenario, may_raise='error' in _CORRECTIONS[name][1])
  result = _compared(drive.drive(tf1, api, scenario))
  expected = _adapted(scenario, golden)
  if name not in _CORRECTIONS:
    return result, [(expected, 'as the original')]
  reason, right = _CORRECTIONS[name]
  # What the correction does not speak of stays as it was.
  rest = right if 'error' in golden or 'error' in right else {
      key: value for key, value in expected.items()
      if key not in _follows(right)}
  return result, [(rest, reason), (right, reason)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize('name', sorted(SCENARIOS))
def test_scenario(name, behavior, api):
  del behavior
  result, pairs = run(name, api)
  for expected, reason in pairs:
    assert not _differences(
        expected, result, _epsilon(SCENARIOS[name])), reason


def _follows(right) -> set:
  """The keys that a correction replaces, with what depends on them."""
  keys = set(right)
  if keys & {'steps', 'gradients'}:
    keys |= {'steps', 'saved', 'slots', 'summaries', 'gradients'}
  if 'trainable_names' in keys:
    keys.add('global_names')
  return keys


def test_every_golden_is_compared_and_every_scenario_recorded():
  assert set(_GOLDENS) == set(SCENARIOS)
  assert len(_GOLDENS) == len(scenarios.all_scenarios()) >= 60


def test_every_wrapper_has_scenarios_that_agree():
  agreeing = [SCENARIOS[name]['wrapper'] for name in _GOLDENS
              if name not in _CORRECTIONS and 'error' not in _GOLDENS[name]]
  for wrapper in ('cross_shard', 'drop_stale', 'elastic_average', 'towers',
                  'variable_clipping'):
    assert agreeing.count(wrapper) >= 10


def test_the_document_names_every_correction():
  root = pathlib.Path(__file__).absolute().parents[2]
  text = (root / 'docs/differences_from_contrib.md').read_text('utf-8')
  assert not [name for name in _CORRECTIONS if f'`{name}`' not in text]
  text = ' '.join(text.split())
  assert f'Of {len(_GOLDENS)} recorded scenarios' in text
  assert f'The other {len(_CORRECTIONS)} are below' in text


@pytest.mark.parametrize('name', sorted(_CORRECTIONS))
def test_correction_is_not_stale(name):
  reason, right = _CORRECTIONS[name]
  assert reason
  golden = _GOLDENS[name]
  assert _differences(right, golden, np.finfo('float32').eps), (
      'the original was right: remove the entry')
