# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where tfplugin differs from tf.contrib on purpose: why, and what is right.

`corrections()` gives, per scenario, a reason and the values that are expected
instead of the recorded ones. They come from arithmetic: numbers one can check
in one's head, or the rule written down in numpy. `{'error': ...}` is the type
of an exception.
"""

from __future__ import annotations

import numpy as np

from testdata.contrib_goldens import scenarios

_ONCE_PER_ROW = ('the clip was subtracted once per occurrence of a row id, and '
                 'not once per row')
_SCOPE = "Adam's powers were named after the wrapper's scope"
_ANY_STEP = 'any global step serves, or none, as for the bare optimizer'
_ANY_BATCH = 'a batch that the towers do not divide was refused'
_STRUCTURE = 'features must have been one tensor or a flat dictionary'
_SHARING = 'only variables of get_variable were shared, and only with reuse'
_EVAL = 'predictions of EVAL were those of the first tower'


def _clipping():
  right = {'steps': [{'v': [[1.2, 1.6], [0.0, 1.0]]}]}
  for number in (2, 3):
    for end in ('', '_resource'):
      yield 'clip_id_%d_times%s' % (number, end), _ONCE_PER_ROW, right
  yield ('clip_overflow', 'the square of the norm overflowed',
         {'steps': [{'v': [[1.2, 1.6]]}]})
  yield ('clip_partitioned', 'a partitioned variable was never clipped',
         {'steps': [{'v': [[0.6, 0.8], [0.5 ** 0.5] * 2]}]})
  yield ('clip_negative_alias', 'a negative alias of dimension 0 clipped rows',
         {'steps': [{'v': [[0.6, 0.0], [0.8, 0.0]]}]})
  # (4, 3) to quadratic targets: the step moves a quarter of the way.
  value = np.array(scenarios.grid(4, 3))
  value = value - (value - np.array(scenarios.grid(4, 3, 5))) / 4
  norm = np.sqrt(np.sum(value ** 2, 1, keepdims=True))
  value *= np.minimum(1.0, 2.0 / norm)
  yield ('clip_integer_dims', 'an integer was refused', {
      'steps': _First({'v': value.tolist()}), 'global_step': 3})
  yield ('clip_unknown_variable', 'a variable that is not trained was ignored',
         {'error': 'ValueError'})
  for name in ('dense_adam', 'sparse_adam', 'float64'):
    yield 'clip_' + name, _SCOPE, {'global_names': [
        'beta1_power', 'beta2_power', 'global_step', 'v', 'v/Adam', 'v/Adam_1']}


class _First(list):
  """A list of which the first elements are expected, whatever follows."""

  def __init__(self, *elements):
    super().__init__(elements)


def _drop_stale():
  yield 'stale_adam', _SCOPE, {'global_names': [
      'beta1_power', 'beta2_power', 'global_step', 'stale_counter', 'v',
      'v/Adam', 'v/Adam_1']}
  # Five steps of the other worker, each a quarter of the way to 1; then a drop.
  yield ('stale_five_updates_in_forward',
         'the step was read after the forward pass: staleness 0, and it is 5',
         {'steps': [{'v': [1 + 3 * 0.75 ** 5, 1 - 3 * 0.75 ** 5],
                     'global_step': 5, 'stale_counter': 1.0}],
          'summaries': {'Gradient_staleness_percentage': 1 / 6}})
  step = {'v': [3.25, -1.25], 'stale_counter': 0.0}
  yield ('stale_global_step_none', _ANY_STEP,
         {'steps': [dict(step, global_step=0)]})
  yield ('stale_no_global_step', 'the error says what is missing',
         {'error': 'ValueError'})
  yield ('stale_apply_only', 'gradients of tf.gradients are accepted',
         {'steps': [dict(step, global_step=1)]})
  yield ('stale_second_instance', 'a second instance has a counter of its own',
         {'steps': [{'global_step': 2, 'stale_counter': 0.0}]})


def _elastic_step(local, center, gradient, rate=0.125):
  """One gradient step of 1/4 and one communication; returns both copies."""
  local = local - 0.25 * gradient
  move = rate * (local - center)
  return local - move, center + move


def _elastic_average():
  local = center = np.array([2.0, -1.0])
  steps = []
  for number in range(3):
    local, center = _elastic_step(local, center, local - 1)
    steps.append({'local/v': local.tolist(), 'center/v': center.tolist(),
                  'global_step': number + 1, 'local_step': number + 1})
  one = {'steps': steps[:1]}
  yield 'elastic_float64', 'float64 was refused', {'steps': steps}
  yield 'elastic_resource_step', 'a resource as global_step was refused', one
  yield 'elastic_statistic', 'statistics of layers were refused', one
  yield 'elastic_second_instance', 'a second instance was refused', one
  yield ('elastic_outside', 'the error says how to make the variable',
         {'error': 'ValueError'})
  yield ('elastic_keras', 'the error names the scope for Keras layers',
         {'error': 'ValueError'})
  # Adam's first step is its learning rate, 1/4, against the gradient's sign.
  yield ('elastic_default_rho_adam', "Adam's learning rate was not found", {
      'steps': [{'local/v': [1.78125, -0.78125],
                 'center/v': [1.96875, -0.96875]}]})
  # Worker 1 begins where the centre was before worker 0's communication.
  start = np.array([2.0, -1.0])
  _, center = _elastic_step(start, start, start - 1)
  other, center = _elastic_step(start, center, start - 1)
  yield ('elastic_synchronous', 'the barrier blocked with every worker alive', {
      'steps': [*one['steps'], {
          'local/v': other.tolist(), 'center/v': center.tolist(),
          'global_step': 2, 'local_step': 1}]})
  # rho = 1/2, b = 4 and its centre 3: (4 - 3) / 2.
  b = 4 - 0.25 * 0.5
  after, center = _elastic_step(b, 3.0, 0.5 * (b - 3))
  right = {'steps': [{'local/a': [2.0], 'local/b': [b]}, {
      'local/a': [2.0], 'local/b': [after], 'center/b': [center]}]}
  reason = 'var_list was paired with the copies of other variables'
  yield 'elastic_var_list_b', reason, dict(right, gradients={'b': [0.5]})
  yield 'elastic_var_list_b_a', reason, dict(
      right, gradients={'a': [0.0], 'b': [0.5]})
  yield ('elastic_resource_saver', 'the local value was saved, not the centre',
         {'saved': {'v': steps[1]['center/v']}})


def _regression(x, y, weights=None, kernel='w', bias='b', steps=3, rate=0.25):
  """Gradient descent on the mean of squares with nonzero weight."""
  x, y = np.array(x), np.array(y)
  weights = np.ones_like(y) if weights is None else np.array(weights)
  count = max(1, np.count_nonzero(weights))
  w, b, result = np.zeros((x.shape[1], 1)), np.zeros(1), []
  for _ in range(steps):
    error = x @ w + b - y
    loss = np.sum(weights * error ** 2) / count
    w = w - rate * 2 * x.T @ (weights * error) / count
    b = b - rate * 2 * np.sum(weights * error) / count
    result.append({kernel: w.tolist(), bias: b.tolist(), 'loss': loss})
  return {'steps': result, 'global_step': steps}


def _towers():
  x, y = scenarios.grid(8, 2, 1), scenarios.grid(8, 1, 4)
  logits = np.array(x) @ [[0.5], [-0.25]] + 0.125
  for name in ('eval_2', 'eval_4'):
    yield 'towers_' + name, _EVAL, {'predictions': {'y': logits.tolist()}}
  yield ('towers_eval_maximum', 'metrics of towers were added up', {
      'metrics': {'maximum': max(max(y))},
      'predictions': {'y': logits.tolist()}})
  yield ('towers_export_classes', 'classes were stacked, scores concatenated',
         {'classes': [['a', 'b']] * 8})
  uneven = [[1.0]] * 4 + [[0.0]] * 3 + [[1.0]]
  yield ('towers_uneven_weights', 'the mean of means was taken',
         _regression(x, y, uneven))
  yield 'towers_indivisible_train', _ANY_BATCH, _regression(x[:7], y[:7])
  yield 'towers_batch_of_one', _ANY_BATCH, _regression(x[:1], y[:1])
  error = logits[:7] - y[:7]
  agree = (logits[:7] > 0) == (np.array(y[:7]) > 0)
  yield 'towers_indivisible_eval', _ANY_BATCH, {
      'loss': np.mean(error ** 2), 'predictions': {'y': logits[:7].tolist()},
      'metrics': {'mse': np.mean(error ** 2), 'mean': np.mean(logits[:7]),
                  'accuracy': np.mean(agree)}}
  yield 'towers_indivisible_infer', _ANY_BATCH, {
      'predictions': {'y': [[0.0]] * 7, 'twice': [[0.0]] * 7}}
  for name in ('keras', 'layers'):
    yield 'towers_' + name, _SHARING, dict(
        _regression(x, y, None, 'dense/kernel', 'dense/bias'),
        trainable_names=['dense/bias', 'dense/kernel'])
  yield 'towers_nested', _STRUCTURE, _regression(x, y)
  yield 'towers_tuple', _STRUCTURE, _regression(x, y)
  yield 'towers_scalar', _STRUCTURE, _regression(x, y, [[0.5]] * 8)
  yield ('towers_only_in_first_tower', 'the model_fn is called once',
         _regression(x, y))
  yield ('towers_two_only_in_first_tower', 'the model_fn is called once',
         _regression(x, y, rate=0.5))
  yield ('towers_no_tower_optimizer', 'a plain optimizer serves',
         _regression(x, y))


def _cross_shard():
  for name in ('one', 'groups_sum'):
    yield ('shard_' + name, 'a sum over one shard is left out',
           {'num_sums': 0, 'groups': [], 'summands': []})
  factor = np.array(scenarios.grid(2, 2, 3))
  yield ('shard_float64', 'the operation takes float64 now',
         {'num_sums': 1, 'groups': [[[0, 1]]],
          'summands': [(factor / 2).tolist()]})
  yield ('shard_sparse', 'rows are gathered, not made dense and summed',
         {'num_sums': 0, 'groups': []})
  start = np.array(scenarios.grid(2, 2))
  yield ('shard_off_tpu', 'nothing ran off a TPU', {
      'steps': [{'v': (start - factor / 4).tolist()},
                {'v': (start - factor / 2).tolist()}], 'global_step': 2})


def corrections():
  """Returns `{scenario name: (reason, expected values)}`."""
  table = {}
  for part in (_clipping, _drop_stale, _elastic_average, _towers, _cross_shard):
    for name, reason, expected in part():
      if name in table:
        raise ValueError(name + ' is listed twice')
      table[name] = reason, expected
  return table


def is_open(expected):
  """Tells whether more elements may follow in a list of expected ones."""
  return isinstance(expected, _First)
