# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Everything that libraries ask of a replica context x every decorator.

A decorator builds a model_fn inside a replica context. TensorFlow, Keras and
Estimator ask that context and its strategy where they are and how many there
are. Here each question is asked inside each decorator; the table of the answers
is written into docs/architecture.md.
"""
# BUILD data: //:docs

from __future__ import annotations

import functools
import pathlib
import re

import pytest
import tensorflow as tf

import tfplugin
from tests.helpers import decorated_models
from tfplugin import estimator
from tfplugin.estimator import decorator_stack

tf1 = tf.compat.v1

DOCUMENT = pathlib.Path(__file__).parents[2] / 'docs' / 'architecture.md'
BEGIN = '<!-- Written by tests/conformance/replica_context_test.py: -->\n'
END = '<!-- Until here. -->\n'

# The first of two replicas has the first row, the second the other one.
FEATURES = [[1.0], [3.0]]
REFUSED = 'refused'
PLACES = ('no decorator, `replicate_model_fn`', 'the three that intercept',
          '`cross_shard`')
# Between the answers of the first two that intercept and of the third.
BUT_ELASTIC = '; `elastic_average`: '
DEVICES = ['/cpu:0', '/cpu:1']
# decorator: (its place, what it is)
DECORATORS = {
    'none': (0, lambda model_fn: model_fn),
    'drop_stale_gradients': (1, estimator.drop_stale_gradients(staleness=4)),
    'clip_variables': (1, estimator.clip_variables(
        rules={'weight': 0}, max_norm=1e6)),
    'elastic_average': (1, estimator.elastic_average(communication_period=2)),
    'cross_shard': (2, estimator.cross_shard(devices=DEVICES)),
    'replicate_model_fn': (0, functools.partial(
        tfplugin.replicate_model_fn, devices=DEVICES)),
}

context = tf.distribute.get_replica_context
strategy = tf.distribute.get_strategy
SUM, MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN


def make_variable(**kwargs):
  return tf1.get_variable('asked', initializer=1.0, **kwargs)


def is_plain(variable):
  return type(variable).__module__.startswith('tensorflow.')


def merged(fn):
  return context().merge_call(lambda _: fn())


def reduced(x):
  return context().merge_call(
      lambda strategy, value: strategy.extended.reduce_to(MEAN, value, value),
      args=(tf.reduce_sum(x),))


def colocated(x):
  with tf1.device('/cpu:1'):
    variable = make_variable()
  with strategy().extended.colocate_vars_with(variable):
    slot = tf1.get_variable('slot', initializer=0.0)
  return slot.device == variable.device


def read_on_demand(x):
  return is_plain(tf.Variable(
      0.0, synchronization=tf.VariableSynchronization.ON_READ,
      aggregation=tf.VariableAggregation.SUM, trainable=False))


def squares(x, **kwargs):
  return tf.keras.losses.MeanSquaredError(**kwargs)(tf.zeros_like(x), x)


def moving_average(x):
  variable, average = make_variable(), tf.train.ExponentialMovingAverage(0.5)
  with tf.control_dependencies([average.apply([variable])]):
    return tf.identity(average.average(variable))


def moving_mean(x):
  layer = tf.keras.layers.BatchNormalization(momentum=0.5)
  layer(x, training=True)
  with tf.control_dependencies(layer.updates):
    return tf.identity(layer.moving_mean)[0]


def synchronized(x):
  layer = tf.keras.layers.BatchNormalization(synchronized=True, epsilon=1e-6)
  return tf.reduce_sum(layer(x, training=True))


def stateful(x):
  tf.keras.layers.SimpleRNN(2, stateful=True)
  return 'works'


def keras_optimizer(x):
  variable = make_variable(use_resource=True)
  optimizer = tf.keras.optimizers.legacy.SGD(0.5)
  with tf.control_dependencies(
      optimizer.get_updates(variable * tf.reduce_sum(x), [variable])):
    return tf.identity(variable.read_value())


def applies(optimizer):
  optimizer.apply_gradients([(tf.ones([]), make_variable(use_resource=True))])
  return 'works'


def loss_scale(x):
  return applies(tf1.mixed_precision.MixedPrecisionLossScaleOptimizer(
      tf1.train.GradientDescentOptimizer(0.0), 'dynamic'))


def keras_loss_scale(x):
  return applies(tf.keras.mixed_precision.LossScaleOptimizer(
      tf.keras.optimizers.legacy.SGD(0.0)))


# (what is asked, who asks, the question, the answer in each of PLACES)
QUESTIONS = (
    ('`tf.distribute.has_strategy()`', 'optimizers, Keras',
     lambda x: tf.distribute.has_strategy(), ('no', 'no', 'yes')),
    ('`tf.distribute.in_cross_replica_context()`', 'optimizers, Keras',
     lambda x: tf.distribute.in_cross_replica_context(), ('no',) * 3),
    ('`get_replica_context().strategy is get_strategy()`', 'Keras',
     lambda x: context().strategy is strategy(), ('yes',) * 3),
    ('`get_replica_context().num_replicas_in_sync`', 'your code',
     lambda x: context().num_replicas_in_sync, ('1', '1', '2')),
    ('`get_strategy().num_replicas_in_sync`', 'optimizers, heads, losses',
     lambda x: strategy().num_replicas_in_sync, ('1', '1', '2')),
    ('`.replica_id_in_sync_group`', '`tf.random.Generator`, summaries',
     lambda x: context().replica_id_in_sync_group, ('0', '0', '0, 1')),
    ('`.all_reduce(SUM, reduce_sum(x))`', 'Keras optimizers, batch norm',
     lambda x: context().all_reduce(SUM, tf.reduce_sum(x)), ('4',) * 3),
    ('`.all_reduce(MEAN, reduce_sum(x))`', 'your code',
     lambda x: context().all_reduce(MEAN, tf.reduce_sum(x)),
     ('4', '4', '2')),
    ('`reduce_sum(.all_gather(x))`', 'your code',
     lambda x: tf.reduce_sum(context().all_gather(x, 0)), ('4',) * 3),
    ('`.merge_call`: `in_cross_replica_context()`', '`tf.train`, metrics',
     lambda x: merged(tf.distribute.in_cross_replica_context), ('yes',) * 3),
    ('`.merge_call`: `has_strategy()`', 'loss scales',
     lambda x: merged(tf.distribute.has_strategy), ('no', 'no', 'yes')),
    ('`.merge_call`: `extended.reduce_to(MEAN, reduce_sum(x))`',
     'moving averages', reduced, ('4', '4', '2')),
    ('`extended.colocate_vars_with(v)` colocates', 'slots, Keras', colocated,
     ('yes',) * 3),
    ('`extended.variable_created_in_scope(v)`', 'Keras',
     lambda x: strategy().extended.variable_created_in_scope(make_variable()),
     ('yes',) * 3),
    ('`extended.should_checkpoint`, `.should_save_summary`', 'Estimator',
     lambda x: (strategy().extended.should_checkpoint and
                strategy().extended.should_save_summary), ('yes',) * 3),
    ("`get_variable` makes TensorFlow's own class", 'your code',
     lambda x: is_plain(make_variable()),
     ('yes', f'yes{BUT_ELASTIC}no', 'no')),
    ('so does `tf.Variable` with `ON_READ`', 'Keras metrics', read_on_demand,
     ('yes', 'yes', 'no')),
    ('`tf1.losses.mean_squared_error(0, x)`', 'heads',
     lambda x: tf1.losses.mean_squared_error(tf.zeros_like(x), x),
     ('5', '5', '1, 9')),
    ('`tf.keras.losses.MeanSquaredError()(0, x)`', 'Keras losses', squares,
     ('5', '5', '1, 9')),
    ("the same with `reduction='sum'`", 'Keras losses',
     lambda x: squares(x, reduction='sum'), ('10', '10', '1, 9')),
    ('`tf.nn.scale_regularization_loss(1.0)`', '`tf.nn`',
     lambda x: tf.nn.scale_regularization_loss(1.0), ('1', '1', '0.5')),
    ('`tf.nn.compute_average_loss(x)`', '`tf.nn`',
     lambda x: tf.nn.compute_average_loss(x[:, 0]),
     ('2', '2', '0.5, 1.5')),
    ('`tf.train.ExponentialMovingAverage` of a variable of 1',
     'moving averages', moving_average, ('1',) * 3),
    ('moving mean of batch norm, momentum 0.5', 'Keras layers', moving_mean,
     ('1',) * 3),
    ('sum of batch norm with `synchronized=True`', 'Keras layers', synchronized,
     ('0', '0', '-1, 1')),
    ('`SimpleRNN(stateful=True)`', 'Keras layers', stateful,
     ('works', 'works', REFUSED)),
    ('`v = 1` after a Keras SGD of 0.5 on the loss `v * reduce_sum(x)`',
     'Keras optimizers', keras_optimizer, ('-1', '-1', '0')),
    ('a dynamic loss scale of `tf1.mixed_precision`', 'loss scales', loss_scale,
     ('works', 'works', 'works')),
    ('`tf.keras.mixed_precision.LossScaleOptimizer`', 'loss scales',
     keras_loss_scale, ('works', 'works', REFUSED)),
)


def test_every_decorator_is_asked():
  assert {*decorator_stack.DECORATORS, 'none'} == {*DECORATORS}


def answer_to(question, features):
  try:
    return question(features)
  except (RuntimeError, ValueError):
    return REFUSED


def answers_in(decorate):
  """What each question returned in each replica; an exception as REFUSED."""
  answers = []

  def model_fn(features, labels, mode):
    weight = tf1.get_variable('weight', initializer=[[0.5]])
    # Replicas take turns, at each `merge_call`.
    of_replica = []
    answers.append(of_replica)
    for number, (_, _, question, _) in enumerate(QUESTIONS):
      with tf1.variable_scope(f'question_{number}'):
        of_replica.append(answer_to(question, features))
    loss = tf.reduce_sum(features @ weight)
    train_op = tf1.train.GradientDescentOptimizer(0.0).minimize(
        loss, tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.train.create_global_step()
    features = tf.constant(FEATURES)
    decorated_models.call(decorate(model_fn), tf.estimator.ModeKeys.TRAIN,
                          features, features)
    session.run(tf1.global_variables_initializer())
    session.run(tf1.local_variables_initializer())
    tensors = [answer for answer in tf.nest.flatten(answers)
               if tf.is_tensor(answer)]
    values = iter(session.run(tensors))
    answers = [[next(values) if tf.is_tensor(answer) else answer
                for answer in replica] for replica in answers]
  return {asked: per_replica for (asked, *_), *per_replica
          in zip(QUESTIONS, *answers)}


@pytest.fixture(scope='module', name='answers')
def fixture_answers():
  """Asks all questions at once; in each place, under each behaviour, once."""
  return functools.cache(
      lambda behavior, decorator: answers_in(DECORATORS[decorator][1]))


def shown(answers):
  """`answers` as the table has them: once where they are the same."""
  texts = [answer if isinstance(answer, str) else
           'no' if answer is False else 'yes' if answer is True else
           f'{float(answer):.2g}' for answer in answers]
  return ', '.join(texts if len(set(texts)) > 1 else texts[:1])


@pytest.mark.filterwarnings('ignore:.*LossScaleOptimizer')
@pytest.mark.parametrize('asked, expected', [
    (asked, expected) for asked, _, _, expected in QUESTIONS])
@pytest.mark.parametrize('decorator', DECORATORS)
def test_answer(behavior, answers, decorator, asked, expected):
  place, _ = DECORATORS[decorator]
  wanted = expected[place].split(BUT_ELASTIC)
  assert shown(answers(behavior, decorator)[asked]) == wanted[
      -1 if decorator == 'elastic_average' else 0]


def render():
  """The table, from what the tests walk."""
  rows = [('asked', 'by', *PLACES), ['---'] * 5]
  rows += [(asked, by, *expected) for asked, by, _, expected in QUESTIONS]
  return '\n'.join(f'| {" | ".join(row)} |' for row in rows) + '\n'


def between_marks(text, table):
  """`text` with `table` between the marks."""
  found = re.compile(f'(?<={BEGIN}).*(?={END})', re.DOTALL)
  assert len(found.findall(text)) == 1
  return found.sub(lambda _: f'\n{table}\n', text)


def test_document_holds_the_table():
  text = DOCUMENT.read_text()
  assert text == between_marks(text, render()), (
      f'run `python {pathlib.Path(__file__).name}` in tests/conformance')


if __name__ == '__main__':
  DOCUMENT.write_text(between_marks(DOCUMENT.read_text(), render()))
