# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The same numbers on every TensorFlow as on 2.15.

  python -m tests.conformance.versions_test           measures; writes the page
  python -m tests.conformance.versions_test --record  records before, on 2.15
"""
# BUILD data: //:docs
# BUILD data: //:sources
# BUILD data: //tests/conformance:contract_test
# BUILD data: //tests/conformance:contrib_parity_test

from __future__ import annotations

import itertools
import pathlib
import re
import sys

import numpy as np
import pytest

from tests import conftest
from tests.conformance import contrib_parity_test
from tests.conformance.versions import digests
from tests.conformance.versions import page
from tests.conformance.versions import trajectories

DOCUMENT = pathlib.Path(__file__).parents[2] / 'docs' / 'versions.md'

# Roundings that are allowed: ten or so in each step, of six at most. Where
# layers compute in a shorter type than that of their variables, in roundings of
# that type, four in each of four steps: the weights' cast, the product, the sum
# and the activation round by a half at most, forth and back.
_ROUNDINGS, _MIXED_ROUNDINGS = 64, 16
_COMPUTED_IN = {'mixed_float16': 2.0**-10, 'mixed_bfloat16': 2.0**-7}
_TRAINS = {
    'contract': trajectories.contract(),
    'programs': trajectories.of_programs(),
    'examples': trajectories.of_examples(),
}
_NAMES = [(kind, name) for kind, trains in _TRAINS.items() for name in trains]


def _bound(name: str) -> int:
  return _MIXED_ROUNDINGS if name in _COMPUTED_IN else _ROUNDINGS


def _roundings(name: str, recorded: dict, digest: dict) -> float:
  """Returns the largest difference, in roundings of what it is computed in."""
  of_float32 = float(np.finfo(np.float32).eps)
  return digests.roundings(recorded[name], digest) * (
      of_float32 / _COMPUTED_IN.get(name, of_float32))


@pytest.fixture(scope='module', name='recorded')
def _recorded():
  return digests.read_trajectories()


@pytest.mark.filterwarnings('ignore:The initializer GlorotUniform')
@pytest.mark.sampled(4)
@pytest.mark.parametrize('kind, name', _NAMES)
def test_trajectory(recorded, kind, name):
  digest = digests.digest(_TRAINS[kind][name]())
  assert _roundings(name, recorded, digest) <= _bound(name)


def test_every_trajectory_is_recorded(recorded):
  assert set(recorded) == {name for _, name in _NAMES}
  assert len(recorded) == len(_NAMES)


def test_what_was_measured_is_near_and_complete():
  measured = digests.read_measured()
  assert {'2.15', '2.16', '2.18', '2.21'} <= set(measured)
  counts = {kind: len(trains) for kind, trains in _TRAINS.items()}
  counts['parity'] = len(contrib_parity_test.SCENARIOS)
  for version, of_version in measured.items():
    assert of_version['versions']['TensorFlow'].startswith(f'{version}.')
    for kind, count in counts.items():
      figure = of_version[kind]
      assert figure['trajectories'] == count
      assert figure['roundings'] <= _ROUNDINGS


@pytest.mark.parametrize('index, size', itertools.product(
    (0, 4, -1), (5, 1000)))
def test_a_change_of_one_element_is_seen(index, size):
  values = np.linspace(-1.0, 2.0, size, dtype=np.float32)
  changed = values.copy()
  changed[index] += 1e-2
  assert digests.roundings(*(
      digests.digest({'v': each}) for each in (values, changed))) > 1000


@pytest.mark.parametrize('other', [
    {}, {'v': np.ones(2)}, {'v': np.ones(2, np.float32), 'w': np.ones(1)}])
def test_other_names_and_types_are_seen(other):
  recorded = digests.digest({'v': np.ones(2, np.float32)})
  assert digests.roundings(
      recorded, digests.digest(other)) == np.inf


def test_a_rounding_is_one():
  one, next_one = (digests.digest({'v': np.float32([value])})
                   for value in (1.0, 1.0 + 2**-23))
  assert digests.roundings(one, next_one) == pytest.approx(1.0)


def test_whole_numbers_are_equal_or_not():
  one, two = (digests.digest({'v': np.int64(value)}) for value in (1, 2))
  assert digests.roundings(one, two) == np.inf
  assert not digests.roundings(one, one)


def _render() -> str:
  return page.render(
      _ROUNDINGS, _MIXED_ROUNDINGS, trajectories.EXAMPLE_STEPS)


def test_document_holds_the_table():
  assert DOCUMENT.read_text(encoding='utf-8') == _render(), (
      'run `python -m tests.conformance.versions_test`')


def _train_all() -> dict[str, dict]:
  """Returns digests by kind and name."""
  return {kind: {name: digests.digest(train())
                 for name, train in trains.items()}
          for kind, trains in _TRAINS.items()}


def _measure(trained: dict[str, dict]) -> None:
  """Writes how near they are to what was recorded."""
  recorded = digests.read_trajectories()
  measured = {'versions': page.versions()}
  for kind, of_kind in trained.items():
    measured[kind] = {
        'trajectories': len(of_kind),
        'roundings': max(_roundings(name, recorded, digest)
                         for name, digest in of_kind.items())}
  scenarios, roundings = contrib_parity_test.measure()
  measured['parity'] = {'trajectories': scenarios, 'roundings': roundings}
  version = re.match(r'\d+\.\d+', measured['versions']['TensorFlow']).group()
  digests.write_measured(version, measured)


def _main(arguments: list[str]) -> None:
  conftest.pytest_configure(None)
  trained = _train_all()
  if '--record' in arguments:
    if not page.versions()['TensorFlow'].startswith('2.15.'):
      raise SystemExit('Trajectories are recorded on TensorFlow 2.15.')
    digests.write_trajectories(
        {name: digest for of_kind in trained.values()
         for name, digest in of_kind.items()})
  _measure(trained)
  DOCUMENT.write_text(_render(), encoding='utf-8')


if __name__ == '__main__':
  _main(sys.argv[1:])
