# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is recorded and compared: plain data, without TensorFlow.

A scenario has a `name`, a `wrapper` (which chooses the driver) and what that
driver reads. `may_raise` marks those that raise in tf.contrib. `model` lists
variables, each with its value and its loss; see models.py.
"""

from __future__ import annotations

OPTIMIZERS = {
    'sgd': ['SGD', {'learning_rate': 0.25}],
    'momentum': ['Momentum', {'learning_rate': 0.25, 'momentum': 0.5}],
    'nesterov': ['Momentum', {'learning_rate': 0.25, 'momentum': 0.5,
                              'use_nesterov': True}],
    'adagrad': ['Adagrad', {'learning_rate': 0.5}],
    'adam': ['Adam', {'learning_rate': 0.25}],
    'rmsprop': ['RMSProp', {'learning_rate': 0.125, 'momentum': 0.5}],
    'ftrl': ['Ftrl', {'learning_rate': 0.5}],
}


def grid(rows, columns, shift=0):
  """A matrix of quarters between -2.75 and 2.75, the same every time."""
  return [[((row * columns + column + shift) * 7 % 23 - 11) / 4
           for column in range(columns)] for row in range(rows)]


def variable(name, value, loss, **options):
  return dict(options, name=name, value=value, loss=loss)


def linear(factor):
  return {'kind': 'linear', 'factor': factor}


def quadratic(target):
  return {'kind': 'quadratic', 'target': target}


def gather(ids, factor):
  return {'kind': 'gather', 'ids': ids, 'factor': factor}


def _clip(name, model, optimizer='sgd', steps=3, **more):
  settings = dict({'dims': {'v': [1]}, 'max_norm': 2.0},
                  **more.pop('settings', {}))
  return dict(more, name='clip_' + name, wrapper='variable_clipping',
              model=model, optimizer=OPTIMIZERS[optimizer], steps=steps,
              settings=settings)


def _clipping():
  dense = [variable('v', grid(4, 3), quadratic(grid(4, 3, 5)))]
  sparse = [variable('v', grid(5, 3), gather([1, 3], grid(2, 3, 9)))]
  for key in OPTIMIZERS:
    yield _clip('dense_' + key, dense, key)
  for key in ('sgd', 'momentum', 'adagrad', 'ftrl'):
    yield _clip('sparse_' + key, sparse, key)
  yield _clip('sparse_adam', sparse, 'adam', 5, settings={'max_norm': 1.0})
  yield _clip('float64', [dict(dense[0], dtype='float64')], 'adam')
  yield _clip('sparse_float64', [dict(sparse[0], dtype='float64')])
  yield _clip('resource', [dict(dense[0], use_resource=True)])
  yield _clip('columns', dense, settings={'dims': {'v': [0]}})
  yield _clip('whole', dense, settings={'dims': {'v': [0, 1]}})
  yield _clip('within_bounds', dense, settings={'max_norm': 100.0})
  yield _clip('locking', dense, settings={'use_locking': True})
  yield _clip('colocated', dense,
              settings={'colocate_clip_ops_with_vars': True})
  yield _clip('sparse_dimension', sparse, settings={'dims': {'v': [0]}})
  other = variable('other', grid(2, 2), linear(grid(2, 2, 3)))
  unused = variable('unused', grid(2, 2), {'kind': 'none'})
  yield _clip('several_variables', [*dense, other, unused], settings={
      'dims': {'v': [1], 'unused': [1]}})
  yield _clip('chained', [*dense, other], chained={
      'dims': {'other': [0, 1]}, 'max_norm': 1.0})
  row = [[6.0, 8.0], [0.0, 1.0]]
  for number in (1, 2, 3):
    for resource in (False, True):
      yield _clip(
          'id_%d_times%s' % (number, '_resource' if resource else ''),
          [variable('v', row, gather([0] * number, [[0.0, 0.0]] * number),
                    use_resource=resource)], steps=1)
  yield _clip('overflow', [variable('v', [[3e19, 4e19]], linear([[0.0, 0.0]]))],
              steps=1)
  yield _clip('partitioned', [variable(
      'v', [[3.0, 4.0], [5.0, 5.0]], linear([[0.0, 0.0]] * 2), parts=2)],
              steps=1, settings={'max_norm': 1.0})
  yield _clip('integer_dims', dense, settings={'dims': {'v': 1}},
              may_raise=True)
  yield _clip('unknown_variable', dense, unknown='stranger', may_raise=True,
              settings={'dims': {'v': [1], 'stranger': [0]}})
  yield _clip('negative_alias', [variable(
      'v', [[3.0, 0.0], [4.0, 0.0]], gather([0], [[0.0, 0.0]]))],
              steps=1, settings={'dims': {'v': [-2]}, 'max_norm': 1.0})


def _stale(name, overtaking, staleness=1, optimizer='sgd', model=None, **more):
  model = model or [variable('v', [4.0, -2.0], quadratic([1.0, 1.0]))]
  return dict(more, name='stale_' + name, wrapper='drop_stale', model=model,
              optimizer=OPTIMIZERS[optimizer], overtaking=overtaking,
              settings={'staleness': staleness})


def _drop_stale():
  for key in OPTIMIZERS:
    yield _stale(key, [0, 2, 1], optimizer=key)
  for staleness in (0, 1, 5):
    yield _stale('bound_%d' % staleness, [0, 1, 0, 2, 5, 6], staleness)
  sparse = [variable('v', grid(3, 2), gather([0, 2], grid(2, 2, 4)))]
  yield _stale('sparse', [0, 2, 1], model=sparse)
  yield _stale('sparse_repeated', [0, 2, 1], model=[
      variable('v', grid(3, 2), gather([2, 2], grid(2, 2, 4)))])
  yield _stale('float64', [1, 3], model=[variable(
      'v', [4.0, -2.0], quadratic([1.0, 1.0]), dtype='float64')])
  yield _stale('several_variables', [1, 3], optimizer='momentum', model=[
      variable('v', grid(2, 2), quadratic(grid(2, 2, 3))),
      variable('u', grid(3, 1), linear(grid(3, 1, 5))),
      variable('unused', [1.0], {'kind': 'none'})])
  yield _stale('ten_of_ten', [1] * 10, staleness=0)
  yield _stale('five_updates_in_forward', [5], staleness=1,
               overtaken_in='forward')
  yield _stale('global_step_none', [0], global_step_none=True, may_raise=True)
  yield _stale('no_global_step', [0], global_step_none=True,
               no_global_step=True, may_raise=True)
  yield _stale('second_instance', [0], second_instance=True, may_raise=True)
  yield _stale('apply_only', [0], apply_only=True, may_raise=True)


def _elastic(name, model, order, optimizer='sgd', **more):
  settings = dict({'num_worker': more.get('workers', 1), 'rho': 0.0,
                   'communication_period': 1, 'moving_rate': 0.125},
                  **more.pop('settings', {}))
  return dict(more, name='elastic_' + name, wrapper='elastic_average',
              model=model, order=order, optimizer=OPTIMIZERS[optimizer],
              settings=settings)


def _elastic_average():
  one = [variable('v', [2.0, -1.0], quadratic([1.0, 1.0]))]
  for key in OPTIMIZERS:
    yield _elastic(key, one, [0] * 4, key, settings={'communication_period': 2})
  for period in (1, 3):
    yield _elastic('default_rate_period_%d' % period, one, [0] * 4, settings={
        'communication_period': period, 'moving_rate': None})
  for rho in (None, 0.5):
    yield _elastic('rho_%s' % rho, one, [0] * 4, settings={'rho': rho})
  yield _elastic('sparse', [variable(
      'v', grid(3, 2), gather([0, 2], grid(2, 2, 4)))], [0] * 3)
  yield _elastic('sparse_repeated', [variable(
      'v', grid(3, 2), gather([2, 2], grid(2, 2, 4)))], [0] * 3, 'adagrad')
  yield _elastic('float64', [dict(one[0], dtype='float64')], [0] * 3,
                 may_raise=True)
  yield _elastic('several_variables', [
      *one, variable('u', grid(2, 2), linear(grid(2, 2, 3)))], [0] * 3)
  for key in ('sgd', 'momentum'):
    yield _elastic('two_workers_' + key, one, [0, 1, 1, 0, 1], key, workers=2)
  yield _elastic('two_workers_period_2', one, [0, 0, 1, 0, 1, 1, 0, 1],
                 workers=2, settings={'communication_period': 2})
  yield _elastic('synchronous', one, [0, 1], workers=2, may_raise=True,
                 settings={'synchronous': True})
  yield _elastic('default_rho_adam', one, [0], 'adam', may_raise=True,
                 settings={'rho': None})
  yield _elastic('resource_step', one, [0], resource_step=True, may_raise=True)
  yield _elastic('statistic', one, [0], statistic=True, may_raise=True)
  yield _elastic('outside', one, [0], outside=True, may_raise=True)
  yield _elastic('keras', one, [0, 0], keras=True, may_raise=True)
  yield _elastic('second_instance', one, [0], second_instance=True,
                 may_raise=True)
  for rho in (None, 0.0):
    yield _elastic('no_gradient_rho_%s' % rho, [
        variable('v', [0.0], linear([0.0]))], [0], local_start={'v': [1.0]},
                   settings={'rho': rho, 'moving_rate': 0.1})
  pair = [variable('a', [2.0], linear([0.0])),
          variable('b', [3.0], linear([0.0]))]
  for chosen in (['b'], ['b', 'a']):
    yield _elastic('var_list_' + '_'.join(chosen), pair, [0, 0], settings={
        'rho': 0.5, 'communication_period': 2}, var_list=chosen,
                   gradients=True, local_start={'b': [4.0]})
  yield _elastic('resource_saver', [dict(one[0], use_resource=True)], [0, 0])


_X = grid(8, 2, 1)
_Y = grid(8, 1, 4)


def _towers(name, towers=2, optimizer='sgd', reduction=None, **more):
  base = {'features': {'x': _X}, 'labels': _Y, 'steps': 3}
  return dict(dict(base, **more), name='towers_' + name, wrapper='towers',
              towers=towers, optimizer=OPTIMIZERS[optimizer],
              reduction=reduction or 'weighted_sum_by_nonzero_weights')


_REDUCTIONS = ('weighted_sum', 'weighted_mean',
               'weighted_sum_over_batch_size',
               'weighted_sum_by_nonzero_weights')


def _tower():
  for key in OPTIMIZERS:
    yield _towers(key, optimizer=key)
  small = {'learning_rate': 0.015625}
  for reduction in _REDUCTIONS:
    for number in (1, 2, 4):
      yield dict(_towers('%s_%d' % (reduction, number), number, 'sgd',
                         reduction), optimizer=['SGD', small])
  yield _towers('float64', dtype='float64', optimizer='adam')
  yield _towers('two_optimizers', optimizers=[
      OPTIMIZERS['sgd'], OPTIMIZERS['momentum']])
  weights = {'w': [[0.5], [-0.25]], 'b': [0.125]}
  for number in (1, 2, 4):
    yield _towers('eval_%d' % number, number, mode='eval', weights=weights,
                  metrics='additive')
  yield _towers('eval_maximum', mode='eval', weights=weights, metrics='maximum')
  yield _towers('predict', mode='infer', towers=4)
  yield _towers('export_classes', mode='infer', classes=True)
  uneven = {'x': _X, 'weight': [[1.0]] * 4 + [[0.0]] * 3 + [[1.0]]}
  yield _towers('uneven_weights', features=uneven)
  for mode in ('train', 'eval', 'infer'):
    yield _towers('indivisible_' + mode, mode=mode, weights=weights,
                  metrics='additive', features={'x': _X[:7]}, labels=_Y[:7],
                  may_raise=True)
  yield _towers('batch_of_one', features={'x': _X[:1]}, labels=_Y[:1],
                may_raise=True)
  yield _towers('keras', kind='keras', may_raise=True)
  yield _towers('layers', kind='layers', may_raise=True)
  yield _towers('nested', features={'a': {'x': _X}}, may_raise=True)
  yield _towers('tuple', features=(_X, _X), may_raise=True)
  yield _towers('scalar', features={'x': _X, 'factor': 0.5}, may_raise=True)
  yield _towers('only_in_first_tower', only_in_first_tower=True,
                may_raise=True)
  yield _towers('two_only_in_first_tower', only_in_first_tower=True,
                may_raise=True, optimizers=[OPTIMIZERS['sgd']] * 2)
  yield _towers('no_tower_optimizer', plain_optimizer=True, may_raise=True)


def _shard(name, model=None, optimizer='sgd', **more):
  model = model or [variable('v', grid(2, 2), linear(grid(2, 2, 3)))]
  return dict(more, name='shard_' + name, wrapper='cross_shard', model=model,
              optimizer=OPTIMIZERS[optimizer],
              settings=more.get('settings', {}))


def _cross_shard():
  for key in OPTIMIZERS:
    yield _shard('graph_' + key, optimizer=key, shards=4)
  yield _shard('sum', shards=4, settings={'reduction': 'weighted_sum'})
  yield _shard('one', shards=1)
  yield _shard('groups', shards=4, settings={
      'group_assignment': [[0, 2], [1, 3]]})
  yield _shard('groups_sum', shards=4, settings={
      'group_assignment': [[0], [1], [2], [3]], 'reduction': 'weighted_sum'})
  yield _shard('float64', [variable('v', grid(2, 2), linear(grid(2, 2, 3)),
                                    dtype='float64')], shards=2, may_raise=True)
  yield _shard('several_variables', [
      variable('v', grid(2, 2), linear(grid(2, 2, 3))),
      variable('u', grid(3, 1), linear(grid(3, 1, 5))),
      variable('unused', [1.0], {'kind': 'none'})], shards=2)
  yield _shard('apply_only', shards=4, apply_only=True)
  yield _shard('sparse', [variable(
      'v', grid(3, 2), gather([2, 2], grid(2, 2, 4)))], shards=2,
               structure_only=True)
  yield _shard('off_tpu', steps=2, may_raise=True)
  for name, groups in (('unequal', [[0], [1, 2, 3]]),
                       ('not_all', [[0, 1], [2, 2]]),
                       ('not_lists', [0, 1, 2, 3])):
    yield _shard('groups_' + name, shards=4, may_raise=True,
                 settings={'group_assignment': groups})
  yield _shard('bad_reduction', shards=4, may_raise=True,
               settings={'reduction': 'none'})


def all_scenarios():
  """Returns the scenarios of all wrappers, with names that are unique."""
  return [*_clipping(), *_drop_stale(), *_elastic_average(), *_tower(),
          *_cross_shard()]
