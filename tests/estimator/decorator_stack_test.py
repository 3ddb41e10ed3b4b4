# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every stack of two decorators equals the wrappers by hand, or is refused."""
# BUILD data: //:docs

from __future__ import annotations

import functools
import itertools
import pathlib

import numpy as np
import pytest
import tensorflow as tf

import tfplugin
from tfplugin import estimator
from tfplugin.estimator import decorator_stack
from tfplugin.testing import decorated_models

tf1 = tf.compat.v1

DOCUMENT = pathlib.Path(__file__).parents[2] / 'docs' / 'decorators.md'
TEXT = """
# Decorators: which may be above which

<!-- Written by tests/estimator/decorator_stack_test.py, which trains every
stack that works and provokes every refusal. -->

The decorators of `tfplugin.estimator` can stand above each other. In the table
a row is the upper decorator, and a column the lower one. In a stack of more
than two, every pair must work.

Each stack that works was compared with a model_fn in which the same wrappers
are nested by hand, the upper decorator outermost. The variables are equal, bit
for bit. The exchange of `elastic_average` is at the end of a step in every
order, so it sends clipped values. Each stack was also compared with independent
numbers. Clipped weights have the norm of the bound, or less after an exchange.
`drop_stale_gradients` changes nothing if no gradient is stale. Batches that are
split over towers or shards give the numbers of one device with the whole batch,
to float32 rounding.

"""
REFUSALS = """
These are the errors of the stacks that are refused:

"""

DEVICES = ['/cpu:0', '/cpu:1']
BOUND = 0.6  # The weight begins with .56, and would go far beyond.
ELASTIC = dict(communication_period=2, moving_rate=0.25)
SPLITS = (decorator_stack.REPLICATE, decorator_stack.CROSS_SHARD)
DECORATE = {
    decorator_stack.REPLICATE: estimator.replicate_model_fn(devices=DEVICES),
    decorator_stack.CROSS_SHARD: estimator.cross_shard(devices=DEVICES),
    decorator_stack.ELASTIC: estimator.elastic_average(**ELASTIC),
    decorator_stack.DROP_STALE: estimator.drop_stale_gradients(staleness=2),
    decorator_stack.CLIP: estimator.clip_variables(
        rules={'weight': 0}, max_norm=BOUND),
}
PAIRS = list(itertools.product(decorator_stack.DECORATORS, repeat=2))
WORKING = [pair for pair in PAIRS if decorator_stack.refusal(*pair) is None]
REFUSED = [pair for pair in PAIRS if pair not in WORKING]


def wrapper_of(name, getter):
  """What the decorator `name` is as an optimizer."""
  return {
      decorator_stack.REPLICATE: tfplugin.TowerOptimizer,
      decorator_stack.CROSS_SHARD: tfplugin.CrossShardOptimizer,
      decorator_stack.ELASTIC: lambda optimizer: (
          tfplugin.ElasticAverageOptimizer(
              optimizer, 1, getter, rho=0.0, **ELASTIC)),
      decorator_stack.DROP_STALE: lambda optimizer: (
          tfplugin.DropStaleGradientOptimizer(optimizer, 2)),
      decorator_stack.CLIP: lambda optimizer: (
          tfplugin.VariableClippingOptimizer(optimizer, {'weight': 0}, BOUND)),
  }[name]


def written_by_hand(*names):
  """The model_fn with the wrappers; the batch split, where it is."""

  def model_fn(features, labels, mode):
    getter = tfplugin.ElasticAverageCustomGetter('')
    elastic = []

    def wrap(optimizer):
      for name in reversed(names):
        optimizer = wrapper_of(name, getter)(optimizer)
        if name == decorator_stack.ELASTIC:
          elastic.append(optimizer)
      return optimizer

    model = decorated_models.regression(wrap=wrap)
    if decorator_stack.ELASTIC not in names:
      return model(features, labels, mode)
    with getter.scope():
      spec = model(features, labels, mode)
    return spec._replace(
        training_hooks=(elastic[0].make_session_run_hook(True, 0),))

  return DECORATE[names[0]](model_fn) if names[0] in SPLITS else model_fn


@functools.lru_cache
def trained_alone(name):
  return decorated_models.train(DECORATE[name](decorated_models.regression()))


@pytest.mark.parametrize('above, below', WORKING)
def test_equals_what_is_written_by_hand(behavior, above, below):
  values = decorated_models.train(
      DECORATE[above](DECORATE[below](decorated_models.regression())))
  by_hand = (above, below)
  if below == decorator_stack.ELASTIC and above not in SPLITS:
    by_hand = (below, above)  # The communication is the end of the step.
  decorated_models.assert_equal(
      values, decorated_models.train(written_by_hand(*by_hand)))
  check_values(above, below, values)


def check_values(above, below, values):
  """Compares with what knows nothing of the stack."""
  if decorator_stack.CLIP in (above, below):
    check_norms({above, below}, values)
  if decorator_stack.DROP_STALE in (above, below):
    other = above if below == decorator_stack.DROP_STALE else below
    expected = trained_alone(other)
    for name in ('weight', 'bias', 'losses', 'global_step'):
      np.testing.assert_array_equal(values[name], expected[name])
  if above in SPLITS:
    one_device = trained_alone(below)
    for name in ('weight', 'bias', 'losses'):
      np.testing.assert_allclose(values[name], one_device[name], rtol=1e-4)


def check_norms(names, values):
  norm = np.linalg.norm(values['weight'])
  if decorator_stack.ELASTIC not in names:
    assert norm == pytest.approx(BOUND)
    return
  # The last step was a communication, which mixes what is within the bound.
  center = np.linalg.norm(values['global_center_variable/weight'])
  assert center < norm < BOUND
  assert np.linalg.norm(
      trained_alone(decorator_stack.ELASTIC)['weight']) > 2 * BOUND


@pytest.mark.parametrize('mode', ['train', 'eval', 'infer'])
@pytest.mark.parametrize(
    'names', [(name,) for name in DECORATE] + WORKING, ids='-above-'.join)
def test_returns_a_new_spec_and_leaves_what_it_was_given(behavior, names, mode):
  made, params = [], {'nested': {'list': [1]}}

  def model_fn(features, labels, mode, params):
    del params
    spec = decorated_models.regression()(features['x'], labels, mode)
    spec = spec._replace(scaffold=tf1.train.Scaffold(ready_op=tf.no_op()))
    made.append((spec, dict(vars(spec.scaffold)), dict(spec.predictions or {})))
    return spec

  for name in reversed(names):
    model_fn = DECORATE[name](model_fn)
  with tf.Graph().as_default():
    tf1.train.create_global_step()
    x, labels = tf.ones([4, 2]), None if mode == 'infer' else tf.ones([4, 1])
    features = {'x': x}
    spec = model_fn(features, labels, mode, params)
  assert made
  for own, scaffold, predictions in made:
    assert spec is not own
    assert own.predictions == predictions
    assert vars(own.scaffold) == scaffold
  assert list(features.items()) == [('x', x)]
  assert params == {'nested': {'list': [1]}}


@pytest.mark.parametrize('above, below', REFUSED)
def test_refusal_names_both_and_what_works(above, below):
  decorated = DECORATE[below](decorated_models.regression())
  with pytest.raises(ValueError) as error:
    DECORATE[above](functools.partial(decorated))
  message = str(error.value)
  assert f'Received: {above} above {below}' in message
  assert ('no order works' in message or
          f'put {below} above {above}' in message)


def test_order_that_an_error_names_works():
  for above, below in REFUSED:
    if f'put {below} above' in decorator_stack.refusal(above, below):
      assert (below, above) in WORKING


@pytest.mark.parametrize('names', (
    (decorator_stack.REPLICATE, decorator_stack.DROP_STALE,
     decorator_stack.CLIP),
    (decorator_stack.ELASTIC, decorator_stack.DROP_STALE,
     decorator_stack.CLIP)), ids=str)
def test_three_decorators(names):
  model_fn = decorated_models.regression()
  for name in reversed(names):
    model_fn = DECORATE[name](model_fn)
  assert decorator_stack.decorators_of(model_fn) == names
  decorated_models.assert_equal(
      decorated_models.train(model_fn),
      decorated_models.train(written_by_hand(*names)))


def test_decorators_of_a_plain_function_are_none():
  assert decorator_stack.decorators_of(decorated_models.regression()) == ()


def cell(above, below):
  return 'refused' if decorator_stack.refusal(above, below) else 'works'


def render():
  """Returns the document."""
  names = decorator_stack.DECORATORS
  lines = ['| above \\ below | ' + ' | '.join(f'`{n}`' for n in names) + ' |',
           '| --- |' + ' --- |' * len(names)]
  lines += [f'| `{above}` | ' + ' | '.join(
      cell(above, below) for below in names) + ' |' for above in names]
  reasons = [f'* {decorator_stack.refusal(*pair)}' for pair in REFUSED]
  return (TEXT + '\n'.join(lines) + '\n' + REFUSALS + '\n'.join(reasons) +
          '\n').lstrip()


def test_document_holds_the_table():
  assert DOCUMENT.read_text() == render(), (
      f'run `python {pathlib.Path(__file__).name}` in tests/estimator')


if __name__ == '__main__':
  DOCUMENT.write_text(render())
