# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every strategy x model x optimizer x behaviour, against one device.

What is compared is the checkpoint: which names it has, and the values. The
reference is trained by TensorFlow alone, on one device and with no strategy;
what a strategy's own rule adds to it is computed in numpy.
"""

import functools
import itertools
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin.testing import strategy_models
from tfplugin.testing import strategy_worker

tf1 = tf.compat.v1

TEXT = """
# Strategies: what was compared with what

`RunConfig(train_distribute=S)` with a model_fn that knows nothing of tfplugin.
This page is written by `tests/distribute/strategy_matrix_test.py`, which trains
every cell of the table: it goes out of date as a failing test.

In each cell the checkpoint of the strategy has the names that TensorFlow gives
them on one device without a strategy, and the values of the reference, to
float32 rounding, under v1 and under v2 behaviour. "Copies saved too": besides,
the checkpoint has `<name>/replica_1`, as with TensorFlow's MirroredStrategy; an
Estimator without the strategy continues from it, but not the other way round.
The reference:
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
  """as above, with two devices that train on the same rows."""
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

# (strategy, model, optimizer): (error class, words) of what refuses it.
REFUSED = {}

# (strategy, model): as with TensorFlow's MirroredStrategy, copies are saved
# too, as `<name>/replica_<i>`, where a variable takes no collections.
COPIES_SAVED = {('CrossShardStrategy', 'tf.Variable')}

CELLS = list(itertools.product(
    STRATEGIES, strategy_models.MODELS, strategy_models.OPTIMIZERS))


@pytest.fixture(scope='module', name='reference')
def fixture_reference(tmp_path_factory):
  """Trains on one device; once for all strategies."""
  directory = tmp_path_factory.mktemp('reference')

  @functools.cache
  def train(behavior, model, optimizer):
    model_fn = strategy_models.model_fn_of(model, optimizer)
    name = f'{behavior}-{model}-{optimizer}'.replace(' ', '-')
    return strategy_models.train_without_strategy(
        model_fn, STEPS, str(directory / name))

  return train


@pytest.mark.filterwarnings('ignore:.*is deprecated')
@pytest.mark.filterwarnings('ignore:.*is a deprecated')
@pytest.mark.parametrize('strategy, model, optimizer', CELLS)
def test_cell(behavior, reference, tmp_path, strategy, model, optimizer):
  make_strategy, steps, expected = STRATEGIES[strategy]
  model_fn = strategy_models.model_fn_of(model, optimizer)
  wanted = expected(reference(behavior, model, optimizer))
  if (strategy, model, optimizer) in REFUSED:
    error, words = REFUSED[strategy, model, optimizer]
    with pytest.raises(error, match=words):
      strategy_worker.StrategyWorker(make_strategy(), model_fn)
    return
  worker = strategy_worker.StrategyWorker(make_strategy(), model_fn)
  worker.step(steps)
  contents = strategy_models.contents_of(worker.save(str(tmp_path / 'model')))
  worker.close()
  copies = {name for name in contents if '/replica_' in name}
  assert bool(copies) == ((strategy, model) in COPIES_SAVED)
  assert sorted(set(contents) - copies) == sorted(wanted)
  for name, value in wanted.items():
    np.testing.assert_allclose(
        contents[name], value, rtol=2e-5, atol=1e-6, err_msg=name)


def cell_text(strategy, model, optimizer):
  if (strategy, model, optimizer) in REFUSED:
    return f'refused: {REFUSED[strategy, model, optimizer][1]}'
  if (strategy, model) in COPIES_SAVED:
    return 'equal, copies saved too'
  return 'equal'


def render():
  """The document, from the table that the tests walk."""
  optimizers = list(strategy_models.OPTIMIZERS)
  lines = [TEXT.strip(), '']
  lines += [f'* `{name}`: {expected.__doc__}'
            for name, (_, _, expected) in STRATEGIES.items()]
  heads = ['strategy', 'variables from'] + [
      f'{o}, {b}' for o in optimizers for b in ('v1', 'v2')]
  lines += ['', '| ' + ' | '.join(heads) + ' |', '|' + ' --- |' * len(heads)]
  for strategy, model in itertools.product(STRATEGIES, strategy_models.MODELS):
    cells = [cell_text(strategy, model, o) for o in optimizers for _ in 'vv']
    lines.append('| ' + ' | '.join([f'`{strategy}`', model, *cells]) + ' |')
  return '\n'.join(lines) + '\n'


def test_document_holds_the_table():
  assert DOCUMENT.read_text() == render(), (
      f'run `python {pathlib.Path(__file__).name}` in tests/distribute')


if __name__ == '__main__':
  DOCUMENT.write_text(render())
