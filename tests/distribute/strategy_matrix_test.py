# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every strategy x model x optimizer x behaviour, against one device.

Checkpoints are compared: their names and values. The reference is trained by
TensorFlow alone, on one device and with no strategy; numpy adds to it what the
strategy's own rule does.
"""
# BUILD data: //:docs

import functools
import itertools
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import strategy_models
from tests.helpers import strategy_worker
from tfplugin import distribute
from tfplugin.testing import behaviors

tf1 = tf.compat.v1

TEXT = """
# Strategies: the comparison

Each strategy is used in `RunConfig(train_distribute=...)`, with a model_fn that
does not use tfplugin. Every cell of the table was trained:
[evidence](evidence.md#the-tests-of-the-tables) names the test.

In each cell the checkpoint of the strategy has the names of one device without
a strategy. Its values are equal to the reference, to float32 rounding. The
reference is the program without a strategy, with the rule of the wrapper in
numpy:
"""

KERAS_TEXT = """
## Estimators that bring Keras optimizers

A Keras optimizer advances the global step by itself. If a strategy decides
whether a step counts, it refuses such an optimizer: a TypeError names the
remedy. *Equal*: the checkpoint after three steps is equal to the references
above. With `count_steps='local'` the global step is 3. The model of
`model_to_estimator` has batch norm. `VariableClippingStrategy` wraps a
`CrossShardStrategy`, with a bound that no slice reaches.
"""

OUTSIDE_TEXT = """
## Outside Estimator

`strategy.run`, with and without tf.function, was compared with numpy. So were
`Model.fit`, `evaluate`, `predict` and saved models of Keras. All ran under v2
behaviour, with v1 optimizers and both kinds of Keras optimizers. *Refused*: a
RuntimeError names the alternative.

Under the policy `mixed_float16` Keras scales losses. Keras can do this under
`MirroredStrategy` and `MultiWorkerMirroredStrategy`, and checks their classes.
So Keras itself refuses `TowerStrategy` and `ElasticAverageStrategy` when a
layer is made. The policy `mixed_bfloat16` scales no loss, and works.

| strategy | `strategy.run` | Keras models |
| --- | --- | --- |
| `ElasticAverageStrategy`, with parameter servers | refused | refused |
| `ElasticAverageStrategy(devices)` | equal | equal |
| `DropStaleGradientStrategy` | refused | refused |
| `TowerStrategy` | equal | equal |
| `CrossShardStrategy` | equal | equal |
| `VariableClippingStrategy` over `MirroredStrategy` | equal | equal |
"""

STEPS = 3
MOVING_RATE = 0.25
MAX_NORM = 0.5
DOCUMENT = pathlib.Path(__file__).parents[2] / 'docs' / 'strategies.md'

_IS_SLOT = ('Momentum', 'Adam', 'Adam_1')


def is_weight(name):
  """Whether `name` is of the model: not a slot, power or counter."""
  return (name.split('/')[-1] not in _IS_SLOT and 'power' not in name and
          name != 'global_step')


def same(contents):
  """the optimizer on one device, three steps."""
  return contents[STEPS]


def same_on_two(contents):
  """the optimizer on one device, three steps; two devices, the same rows."""
  return contents[STEPS]


def one_exchange(contents):
  """the centre after three local steps on one device and one exchange."""
  start, end = contents[0], contents[STEPS]
  center = {
      name: (start[name] + MOVING_RATE * (end[name] - start[name])
             if is_weight(name) else end[name]) for name in end}
  return dict(center, global_step=np.int64(1))


def one_exchange_of_two(contents):
  """as above, with two devices that train on the same rows."""
  start, end = contents[0], contents[STEPS]
  center = {
      name: (start[name] + 2 * MOVING_RATE * (end[name] - start[name])
             if is_weight(name) else end[name]) for name in end}
  return dict(center, global_step=np.int64(1))


def clipped_once(contents):
  """one step on one device, then the columns of matrices clipped in numpy."""
  def clip(name, value):
    if not is_weight(name) or value.ndim < 2:
      return value
    norms = np.linalg.norm(value, axis=0, keepdims=True)
    return value * np.minimum(1, MAX_NORM / norms)
  return {name: clip(name, value) for name, value in contents[1].items()}


# strategy: (how to make it, steps, the reference from one device's checkpoints,
# whose docstring goes into the document)
STRATEGIES = {
    'ElasticAverageStrategy': (
        lambda: distribute.ElasticAverageStrategy(
            communication_period=STEPS, moving_rate=MOVING_RATE),
        STEPS, one_exchange),
    'ElasticAverageStrategy(devices)': (
        lambda: distribute.ElasticAverageStrategy(
            communication_period=STEPS, moving_rate=MOVING_RATE,
            devices=['/cpu:0', '/cpu:1']),
        STEPS, one_exchange_of_two),
    'DropStaleGradientStrategy': (
        lambda: distribute.DropStaleGradientStrategy(staleness=0),
        STEPS, same),
    'PackedParameterServerStrategy': (
        distribute.PackedParameterServerStrategy, STEPS, same),
    'TowerStrategy': (
        lambda: distribute.TowerStrategy(['/cpu:0', '/cpu:1']),
        STEPS, same_on_two),
    'CrossShardStrategy': (
        lambda: distribute.CrossShardStrategy(['/cpu:0', '/cpu:1']),
        STEPS, same_on_two),
    'VariableClippingStrategy': (
        lambda: distribute.VariableClippingStrategy(
            tf1.distribute.experimental.ParameterServerStrategy(),
            {'kernel|w$|w/part|table': 0}, MAX_NORM),
        1, clipped_once),
}

CELLS = list(itertools.product(STRATEGIES, strategy_models.OPTIMIZERS))


@pytest.fixture(scope='module', name='trained')
def fixture_trained(tmp_path_factory):
  """Trains all models at once, with a strategy or without; each way once."""
  directory = tmp_path_factory.mktemp('trained')

  @functools.cache
  def without_strategy(behavior, optimizer):
    return strategy_models.train_without_strategy(
        strategy_models.model_fn_of(optimizer), (0, 1, STEPS),
        str(directory / f'{behavior}-{optimizer}'))

  @functools.cache
  def with_strategy(behavior, optimizer, strategy):
    make_strategy, steps, _ = STRATEGIES[strategy]
    worker = strategy_worker.StrategyWorker(
        make_strategy(), strategy_models.model_fn_of(optimizer))
    worker.step(steps)
    path = worker.save(str(directory / f'{behavior}-{optimizer}-{strategy}'))
    worker.close()
    return strategy_models.contents_of(path)

  return without_strategy, with_strategy


# Estimators that bring Keras optimizers, and strategies that count every step.
KERAS_STEPS = 3


def local_exchange(contents, devices=1):
  """as above, but that the global step counts every step."""
  start, end = contents[0], contents[KERAS_STEPS]
  return {
      name: (start[name] + devices * MOVING_RATE * (end[name] - start[name])
             if is_keras_weight(name) else end[name]) for name in end}


def is_keras_weight(name):
  return not any(word in name.lower() for word in (
      'training/', 'optimizer', 'global_step'))


def elastic_counting_steps(devices=None):
  return distribute.ElasticAverageStrategy(
      communication_period=KERAS_STEPS, moving_rate=MOVING_RATE,
      count_steps='local', devices=devices)


# strategy: (how to make it, the reference or the words of the refusal)
KERAS_STRATEGIES = {
    'ElasticAverageStrategy': (
        STRATEGIES['ElasticAverageStrategy'][0], "count_steps='local'"),
    "ElasticAverageStrategy(count_steps='local')": (
        elastic_counting_steps, local_exchange),
    'ElasticAverageStrategy(devices)': (
        STRATEGIES['ElasticAverageStrategy(devices)'][0],
        "count_steps='local'"),
    "ElasticAverageStrategy(devices, count_steps='local')": (
        lambda: elastic_counting_steps(['/cpu:0', '/cpu:1']),
        lambda contents: local_exchange(contents, 2)),
    'DropStaleGradientStrategy': (
        STRATEGIES['DropStaleGradientStrategy'][0], 'tf.compat.v1.estimator'),
    'PackedParameterServerStrategy': (
        STRATEGIES['PackedParameterServerStrategy'][0], same),
    'TowerStrategy': (STRATEGIES['TowerStrategy'][0], same),
    'CrossShardStrategy': (STRATEGIES['CrossShardStrategy'][0], same),
    'VariableClippingStrategy': (
        lambda: distribute.VariableClippingStrategy(
            distribute.CrossShardStrategy(['/cpu:0', '/cpu:1']),
            {'kernel': 0}, 1e6), same),
}


def dnn_classifier(config):
  return tf.estimator.DNNClassifier(
      [2], [tf.feature_column.numeric_column('x', (3,))], optimizer='Adam',
      config=config)


def model_to_estimator(config):
  # Names count from 1 in every model.
  tf.keras.backend.clear_session()
  inputs = tf.keras.Input([3], name='x')
  hidden = tf.keras.layers.Dense(2, kernel_initializer='ones')(inputs)
  hidden = tf.keras.layers.BatchNormalization()(hidden)
  outputs = tf.keras.layers.Dense(1, kernel_initializer='ones')(hidden)
  model = tf.keras.Model(inputs, outputs)
  model.compile(tf.keras.optimizers.legacy.Adam(0.1), 'mse')
  return tf.keras.estimator.model_to_estimator(model, config=config)


KERAS_MODELS = {'tf.estimator.DNNClassifier': dnn_classifier,
                'tf.keras.estimator.model_to_estimator': model_to_estimator}


def keras_contents(model, strategy, directory, save_steps):
  """What the checkpoints after `save_steps` steps hold, by step."""
  x = np.random.RandomState(1).randn(6, 3).astype(np.float32)
  estimator = KERAS_MODELS[model](tf.estimator.RunConfig(
      directory, train_distribute=strategy, tf_random_seed=1,
      save_checkpoints_steps=save_steps, log_step_count_steps=None))
  estimator.train(lambda: tf.data.Dataset.from_tensors(
      ({'x': x}, (x[:, :1] > 0).astype(np.float32))).repeat(),
                  steps=KERAS_STEPS)
  contents = {
      step: strategy_models.contents_of(f'{directory}/model.ckpt-{step}')
      for step in (0, KERAS_STEPS)}
  for values in contents.values():
    # Not of the model, and in no order.
    values.pop('_CHECKPOINTABLE_OBJECT_GRAPH', None)
  return contents


@pytest.fixture(scope='module', name='keras_reference')
def fixture_keras_reference(tmp_path_factory):
  """Trains each Keras model without a strategy, once."""
  return functools.cache(lambda model: keras_contents(
      model, None, str(tmp_path_factory.mktemp('plain')), 1))


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings('ignore:.*is deprecated')
@pytest.mark.parametrize('model', KERAS_MODELS)
@pytest.mark.parametrize('strategy', KERAS_STRATEGIES)
def test_keras_optimizer(keras_reference, strategy, model, tmp_path):
  make_strategy, outcome = KERAS_STRATEGIES[strategy]
  if isinstance(outcome, str):
    with pytest.raises(TypeError, match=outcome):
      keras_contents(model, make_strategy(), str(tmp_path), 100)
    assert not list(tmp_path.glob('*.index'))
    return
  wanted = outcome(keras_reference(model))
  found = keras_contents(model, make_strategy(), str(tmp_path), 100)
  assert sorted(found[KERAS_STEPS]) == sorted(wanted)
  for name, value in wanted.items():
    np.testing.assert_allclose(
        found[KERAS_STEPS][name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings('ignore:.*is deprecated')
@pytest.mark.filterwarnings('ignore:.*is a deprecated')
@pytest.mark.parametrize('strategy, optimizer', CELLS)
def test_cell(behavior, trained, strategy, optimizer):
  without_strategy, with_strategy = trained
  wanted = STRATEGIES[strategy][2](without_strategy(behavior, optimizer))
  contents = with_strategy(behavior, optimizer, strategy)
  assert sorted(contents) == sorted(wanted)
  for model in strategy_models.MODELS:
    scope = strategy_models.scope_of(model)
    assert any(name.startswith(f'{scope}/') for name in wanted)
  for name, value in wanted.items():
    np.testing.assert_allclose(
        contents[name], value, rtol=2e-5, atol=1e-6, err_msg=name)


def render():
  """The document, from the table that the tests walk."""
  optimizers = list(strategy_models.OPTIMIZERS)
  lines = [TEXT.strip(), '']
  lines += [f'* `{name}`: {expected.__doc__}'
            for name, (_, _, expected) in STRATEGIES.items()]
  heads = ['strategy', 'variables from'] + [
      f'{o}, {b}' for o in optimizers for b in behaviors.BEHAVIORS]
  lines += ['', '| ' + ' | '.join(heads) + ' |', '|' + ' --- |' * len(heads)]
  for strategy, model in itertools.product(STRATEGIES, strategy_models.MODELS):
    cells = ['equal' if (strategy, o) in CELLS else ''
             for o in optimizers for _ in behaviors.BEHAVIORS]
    assert all(cells)
    lines.append('| ' + ' | '.join([f'`{strategy}`', model, *cells]) + ' |')
  heads = ['strategy', *(f'`{model}`' for model in KERAS_MODELS)]
  lines += ['', KERAS_TEXT.strip(), '', '| ' + ' | '.join(heads) + ' |',
            '|' + ' --- |' * len(heads)]
  for strategy, (_, outcome) in KERAS_STRATEGIES.items():
    cell = 'refused' if isinstance(outcome, str) else 'equal'
    lines.append('| ' + ' | '.join(
        [f'`{strategy}`', *[cell] * len(KERAS_MODELS)]) + ' |')
  return '\n'.join([*lines, '', OUTSIDE_TEXT.strip()]) + '\n'


def test_document_holds_the_table():
  assert DOCUMENT.read_text() == render(), (
      f'run `python {pathlib.Path(__file__).name}` in tests/distribute')


if __name__ == '__main__':
  DOCUMENT.write_text(render())
