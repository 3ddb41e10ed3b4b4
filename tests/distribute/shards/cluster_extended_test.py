# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for tfplugin.distribute.shards.cluster_extended, in a cluster.

Gradients of known values are summed over real processes; numpy adds halves by
the same rule: each addition is rounded.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tfplugin.bin.processes import ports
from tfplugin.distribute import cluster_config

_PROGRAM = pathlib.Path(__file__).with_name('cluster_extended_program.py')
_ROOT = str(_PROGRAM.parents[3])
_TIME_LIMIT_SECS = 120
_ENGINES = ['tensorflow', 'horovod']
_BFLOAT16 = tf.bfloat16.as_numpy_dtype
# Of halves: gradual and full underflow, ties, and not finite: overflow of a
# value and of a sum, and what was so before.
_EDGES = np.array([3e-6, 2e-8, 1.0004883, 2049.0, 32752.0, 0.1, 4e4, 7e4, -4e4,
                   np.inf, -np.inf, np.nan], np.float32)
_FINITE = slice(0, 6)
_OWN_CHANGE = 'Each shard changes its own gradients by '

pytestmark = [pytest.mark.distributed, pytest.mark.usefixtures('forking')]


def _skip_without(engine):
  if engine == 'horovod' and not importlib.util.find_spec('horovod'):
    pytest.skip('Horovod is not installed: make test-horovod')


def _run(directory, mode, gradients, **settings):
  """Returns the variables of each worker after a step, by name."""
  for index, each in enumerate(gradients):
    np.savez(directory / f'{index}.npz', **each)
  workers = [f'127.0.0.1:{port}' for port in ports.pick_free(len(gradients))]
  port, = ports.pick_free(1)
  return _run_at(workers, {cluster_config.HOROVOD_PORT_VARIABLE: str(port)},
                 directory, mode, settings)


def _run_at(workers, variables, directory, mode, settings):
  processes = []
  try:
    for index in range(len(workers)):
      environment = {
          **os.environ, 'PYTHONPATH': _ROOT, **variables,
          'TF_CONFIG': json.dumps({'cluster': {'worker': workers}, 'task': {
              'type': 'worker', 'index': index}})}
      processes.append(subprocess.Popen(
          [sys.executable, str(_PROGRAM), mode, json.dumps(settings),
           str(directory)], env=environment, stdout=subprocess.DEVNULL,
          stderr=subprocess.PIPE, text=True))
    logs = [p.communicate(timeout=_TIME_LIMIT_SECS)[1] for p in processes]
  except subprocess.TimeoutExpired:
    for process in processes:
      process.kill()
    pytest.fail('\n'.join(p.communicate()[1][-6000:] for p in processes))
  finally:
    for process in processes:
      process.kill()
      process.wait()
  for process, log in zip(processes, logs):
    assert process.returncode == 0, log[-3000:]
  found = []
  for index in range(len(workers)):
    with np.load(directory / f'found{index}.npz') as each:
      found.append(dict(each))
  return found, logs


def _run_alike(*args, **settings):
  """Returns the variables, which all workers have bit for bit, NaNs too."""
  (first, *others), _ = _run(*args, **settings)
  for name, value in first.items():
    for each in others:
      assert each[name].tobytes() == value.tobytes(), name
  return first


def _gradients(shard):
  """Dense gradients of several types and sizes, and rows of another number."""
  random = np.random.RandomState(shard)
  return {
      'large': random.randn(700, 1000).astype(np.float32),
      'small': random.randn(7).astype(np.float32),
      'edges': _EDGES,
      'double': random.randn(5),
      'half': random.randn(3).astype(np.float16),
      'rows': random.randn(shard + 2, 4).astype(np.float32),
      'rows.indices': np.array([1, *range(shard + 1)]),
  }


def _sums(shards, dtype):
  """The sums, by numpy."""
  totals = {}
  with np.errstate(over='ignore', invalid='ignore'):
    for name, value in shards[0].items():
      if name.endswith('.indices'):
        continue
      own = value.dtype
      on_wire = dtype if np.dtype(dtype).itemsize < own.itemsize else own
      halves = [shard[name].astype(on_wire) for shard in shards]
      if f'{name}.indices' in shards[0]:
        totals[name] = np.zeros((8, *value.shape[1:]), own)
        for half, shard in zip(halves, shards):
          np.add.at(totals[name], shard[f'{name}.indices'], half.astype(own))
      else:
        totals[name] = sum(halves[1:], halves[0]).astype(own)
  return totals


def _check(found, expected):
  assert set(found) == set(expected)
  for name, value in expected.items():
    assert found[name].dtype == value.dtype
    if name == 'rows':  # Added in float32, in any order.
      np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-7)
    else:
      np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize('mode', ['function', 'eager', 'v1', 'v2'])
@pytest.mark.parametrize('engine', _ENGINES)
def test_halves_are_added_as_numpy_adds_them(tmp_path, mode, engine):
  _skip_without(engine)
  shards = [_gradients(0), _gradients(1)]
  found = _run_alike(tmp_path, mode, shards, engine=engine,
                     exchange_dtype='float16')
  _check(found, _sums(shards, np.float16))
  edges = found['edges']
  assert edges[1] == 0 and edges[4] == 65504
  assert np.isfinite(edges[_FINITE]).all()
  np.testing.assert_array_equal(
      edges[6:], [np.inf, np.inf, -np.inf, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize('mode', ['v1 late', 'v2 late'])
@pytest.mark.parametrize('engine', _ENGINES)
def test_hooks_of_all_processes_read_the_step_before_it_advances(
    tmp_path, mode, engine):
  """By it each of them decides whether its next run sums for a summary."""
  _skip_without(engine)
  found = _run_alike(tmp_path, mode, [_gradients(0)] * 2, engine=engine)
  assert found['steps'].tolist() == [[0, 0], [1, 1], [2, 2]]


def test_processes_of_several_machines_meet_without_a_variable(tmp_path):
  """At the port after the last one in TF_CONFIG."""
  _skip_without('horovod')
  own, *others = sorted(ports.pick_free(20))
  last = next(port for port in others if ports.is_free(port + 1))
  for index in range(2):
    np.savez(tmp_path / f'{index}.npz', small=np.array([1.0, index]))
  found, _ = _run_at([f'127.0.0.1:{own}', f'127.0.0.2:{last}'], {}, tmp_path,
                     'function', {'engine': 'horovod'})
  np.testing.assert_array_equal([each['small'] for each in found],
                                [[2.0, 1.0]] * 2)


def test_bfloat16_has_the_range_of_float32(tmp_path):
  """Rows, too, of which no engine gathers bfloat16."""
  shards = [_gradients(0), _gradients(1)]
  found = _run_alike(tmp_path, 'function', shards, exchange_dtype='bfloat16')
  _check(found, _sums(shards, _BFLOAT16))
  np.testing.assert_allclose(
      found['edges'][:9], 2 * _EDGES[:9], rtol=2.0 ** -8)


@pytest.mark.parametrize('engine', _ENGINES)
def test_of_three_workers_each_addition_is_rounded(tmp_path, engine):
  """In an order of the ring; all have the same sums."""
  _skip_without(engine)
  shards = [{'large': _gradients(shard)['large']} for shard in range(3)]
  found = _run_alike(tmp_path, 'function', shards, engine=engine,
                     exchange_dtype='float16')['large']
  halves = [shard['large'].astype(np.float16) for shard in shards]
  orders = [(halves[i - 2] + halves[i - 1]) + halves[i] for i in range(3)]
  assert np.any([found == order for order in orders], axis=0).all()
  assert any((found != order).any() for order in orders)


@pytest.mark.parametrize('mode', ['function', 'v1', 'v2'])
def test_devices_of_each_process(tmp_path, mode):
  """Of whole numbers no sum is rounded; both devices have their gradient."""
  whole = np.arange(600_000, dtype=np.float32) % 501
  shards = [{'whole': whole + shard,
             'rows': np.full([1, 2], 3.0 + shard, np.float32),
             'rows.indices': np.array([shard])} for shard in range(2)]
  found = _run_alike(tmp_path, mode, shards, devices=['CPU:0', 'CPU:1'],
                     exchange_dtype='float16')
  np.testing.assert_array_equal(found['whole'], 2 * (2 * whole + 1))
  np.testing.assert_array_equal(found['rows'][:3, 0], [6, 8, 0])


def test_a_group_of_one_has_its_own_gradient_rounded(tmp_path):
  shards = [_gradients(0), _gradients(1)]
  found, _ = _run(tmp_path, 'function', shards, exchange_dtype='float16',
                  group_assignment=[[0], [1]])
  for each, own in zip(found, shards):
    _check(each, _sums([own], np.float16))


@pytest.mark.parametrize('engine', _ENGINES)
def test_without_the_setting_each_type_is_summed_in_its_own(tmp_path, engine):
  _skip_without(engine)
  shards = [_gradients(0), _gradients(1)]
  _check(_run_alike(tmp_path, 'function', shards, engine=engine),
         _sums(shards, np.float64))


@pytest.mark.parametrize('engine', _ENGINES)
def test_sums_that_are_no_gradients_keep_their_type(tmp_path, engine):
  _skip_without(engine)
  found = _run_alike(tmp_path, 'no gradients', [{}, {}], engine=engine,
                     exchange_dtype='float16')
  assert set(found) == {'all_reduce', 'cross_replica_sum', 'reduce'}
  assert set(map(float, found.values())) == {2 + 2.0 ** -19}


def test_gradients_that_are_no_larger_are_named(tmp_path):
  found, _ = _run(tmp_path, 'eager', [{'half': _gradients(0)['half']}] * 2,
                  exchange_dtype='bfloat16')
  for each in found:
    assert str(each['error']).strip().endswith(
        "`exchange_dtype` must be smaller than the type of a gradient. "
        "Received: 'bfloat16' with gradients of float16. Leave it out.")


def test_gradients_that_are_summed_by_hand_get_a_warning(tmp_path):
  shards = [{'small': _gradients(shard)['small']} for shard in range(2)]
  found, logs = _run(tmp_path, 'summed', shards, exchange_dtype='float16')
  for each, log in zip(found, logs):
    _check(each, _sums(shards, np.float32))
    assert log.count('`tfplugin.cross_replica_sum` sums: it sums in their') == 1
    assert _OWN_CHANGE not in log


def test_a_change_of_the_gradients_of_one_process_gets_a_warning(tmp_path):
  shards = [{'small': _gradients(shard)['small']} for shard in range(2)]
  found, logs = _run(tmp_path, 'squared', shards)
  for each, log in zip(found, logs):
    _check(each, {'small': shards[0]['small'] ** 2 + shards[1]['small'] ** 2})
    assert log.count(_OWN_CHANGE) == 1
