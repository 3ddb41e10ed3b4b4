# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small programs of the kinds that public reports tell of: going on.

A program takes over values by other names, evaluates by itself, stops by
another metric, or continues with its input.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import wrapper_forms
from tfplugin.estimator import cluster_training

tf1 = tf.compat.v1

FORMS = wrapper_forms.FORMS
_estimator = wrapper_forms.estimator
_input_fn = wrapper_forms.input_fn


def _spec(mode, loss, rate=0.0):
  return tf1.estimator.EstimatorSpec(
      mode, loss=loss, train_op=wrapper_forms.minimize(loss, rate))


@pytest.mark.sampled(14)
@pytest.mark.parametrize('parts', [None, 2], ids=['whole', 'parts'])
@pytest.mark.parametrize('form', FORMS)
def test_a_table_of_words_has_grown(form, parts, tmp_path, behavior):
  """The rows follow their words, and the table has another name, too."""
  del behavior
  words = {}
  for name, listed in (('old', 'abc'), ('new', 'cdab')):
    words[name] = str(tmp_path / name)
    (tmp_path / name).write_text('\n'.join(listed) + '\n')
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('old/words', initializer=[[5.0], [6.0], [7.0]])
    session.run(tf1.global_variables_initializer())
    path = tf1.train.Saver().save(session, str(tmp_path / 'first/model.ckpt'))

  def model_fn(features, labels, mode):
    del labels
    table = tf1.get_variable(
        'body/words', [4, 1], initializer=tf1.ones_initializer(),
        partitioner=tf1.fixed_size_partitioner(parts) if parts else None)
    rows = tf.concat(list(table), 0) if parts else table
    return _spec(mode, tf.reduce_mean(features) * tf.reduce_sum(rows))

  estimator = _estimator(
      form, model_fn, tmp_path / 'model',
      warm_start_from=tf.estimator.WarmStartSettings(
          path, 'body/.*', {'body/words': tf.estimator.VocabInfo(
              words['new'], 4, 0, words['old'], 3)},
          {'body/words': 'old/words'}))
  estimator.train(_input_fn(), max_steps=2)
  np.testing.assert_array_equal(  # Of c, d, a and b; d is a new word.
      estimator.get_variable_value('body/words'), [[7.0], [0.0], [5.0], [6.0]])


def _momentum(features, labels, mode):
  """The gradient is 1, so the state goes from 1 to 1.5, 1.75, ..."""
  del labels
  w = tf1.get_variable('w', initializer=[[1.0]])
  tf1.get_variable('number', [], tf.int32, tf1.zeros_initializer(),
                   trainable=False)
  loss = tf.reduce_mean(features @ w)
  return tf1.estimator.EstimatorSpec(
      mode, loss=loss, train_op=tf1.train.MomentumOptimizer(0.0, 0.5).minimize(
          loss, tf1.train.get_global_step()))


@pytest.mark.sampled(7)
@pytest.mark.parametrize('form', FORMS)
def test_all_of_a_training_is_taken_over(form, tmp_path, behavior):
  """A list of names means every variable: the optimizer's, and the step."""
  del behavior
  with tf.Graph().as_default(), tf1.Session() as session:
    for name, value in (('w', [[3.0]]), ('w/Momentum', [[1.5]]), ('number', 7),
                        ('global_step', np.int64(2)), ('stale_counter', 0.0)):
      tf1.get_variable(name, initializer=value)
    session.run(tf1.global_variables_initializer())
    path = tf1.train.Saver().save(session, str(tmp_path / 'first/model.ckpt'))
  estimator = _estimator(
      form, _momentum, tmp_path / 'model',
      warm_start_from=tf.estimator.WarmStartSettings(path, ['.*']))
  estimator.train(_input_fn(), max_steps=3)
  assert {name: estimator.get_variable_value(name)
          for name in ('w', 'w/Momentum', 'number', 'global_step')} == {
              'w': 3.0, 'w/Momentum': 1.75, 'number': 7, 'global_step': 3}


@pytest.mark.sampled(14)
@pytest.mark.parametrize('form', FORMS)
def test_a_hook_evaluates_in_the_training_process(form, tmp_path, behavior):
  del behavior
  estimator = _estimator(form, _momentum, tmp_path)
  estimator.train(_input_fn(), max_steps=4, hooks=[
      tf.estimator.experimental.InMemoryEvaluatorHook(
          estimator, _input_fn(1), steps=1, every_n_iter=2)])
  assert estimator.get_variable_value('global_step') == 4
  steps = [event.step for path in (tmp_path / 'eval').glob('events*')
           for event in tf1.train.summary_iterator(str(path))
           if any(value.tag == 'loss' for value in event.summary.value)]
  assert max(steps) == 4


_STOPS = {
    'lower': (0.125, lambda hooks, *args: hooks.stop_if_lower_hook(
        *args, 7.0, run_every_secs=None, run_every_steps=5)),
    'higher': (-0.125, lambda hooks, *args: hooks.stop_if_higher_hook(
        *args, 9.0, run_every_secs=None, run_every_steps=5)),
    'no increase': (0.125, lambda hooks, *args: hooks.stop_if_no_increase_hook(
        *args, 4, min_steps=11, run_every_secs=None, run_every_steps=5)),
}


@pytest.mark.sampled(21)
@pytest.mark.parametrize('kind', _STOPS)
@pytest.mark.parametrize('form', FORMS)
def test_a_limit_of_a_metric_ends_the_training(form, kind, tmp_path, behavior):
  """The loss begins with 8 and changes by an eighth in a step."""
  del behavior
  rate, make_hook = _STOPS[kind]

  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=[[8.0]])
    return _spec(mode, tf.reduce_mean(features @ w), rate)

  estimator = _estimator(form, model_fn, tmp_path, save_checkpoints_steps=5)
  tf.io.gfile.makedirs(estimator.eval_dir())
  cluster_training.train_and_evaluate(
      estimator, tf.estimator.TrainSpec(_input_fn(), 200, [
          make_hook(tf.estimator.experimental, estimator, 'loss')]),
      tf.estimator.EvalSpec(_input_fn(1), steps=1, start_delay_secs=0,
                            throttle_secs=0))
  assert 5 < estimator.get_variable_value('global_step') < 100


@pytest.mark.sampled(7)
@pytest.mark.parametrize('form', FORMS)
def test_a_program_evaluates_each_checkpoint_itself(form, tmp_path, behavior):
  """A second program, which asks for checkpoints until none comes any more."""
  del behavior
  estimator = _estimator(form, _momentum, tmp_path, save_checkpoints_steps=2)
  estimator.train(_input_fn(), max_steps=6)
  paths = [*tf.train.get_checkpoint_state(
      str(tmp_path)).all_model_checkpoint_paths, *tf.train.checkpoints_iterator(
          str(tmp_path), timeout=0, timeout_fn=lambda: True)]
  seen = [estimator.evaluate(_input_fn(1), checkpoint_path=path)['global_step']
          for path in paths]
  assert seen == [0, 2, 4, 6, 6] or seen == [2, 4, 6, 6]


@pytest.mark.sampled(5)
@pytest.mark.parametrize('form', wrapper_forms.DECORATORS)
def test_a_training_goes_on_with_its_input(form, tmp_path, behavior):
  """The checkpoint has the state of the iterator, which the program saves.

  A strategy takes datasets alone, and says so.
  """
  del behavior

  def input_fn():
    iterator = tf1.data.make_one_shot_iterator(
        tf.data.Dataset.range(100).map(lambda number: tf.fill([2, 1], number)))
    tf1.add_to_collection(
        tf1.GraphKeys.SAVEABLE_OBJECTS,
        tf1.data.experimental.make_saveable_from_iterator(iterator))
    return iterator.get_next(), tf.ones([2, 1])

  def model_fn(features, labels, mode):
    del labels
    w = tf1.get_variable('w', initializer=[[0.0]])
    at = tf1.get_variable(
        'at', initializer=tf.constant(-1, tf.int64), trainable=False)
    # The mean of whole numbers that are all alike.
    with tf1.control_dependencies([at.assign(tf.reduce_max(features))]):
      return _spec(mode, tf.reduce_mean(tf.cast(features, tf.float32) @ w))

  for max_steps in (3, 6):
    estimator = _estimator(form, model_fn, tmp_path)
    estimator.train(input_fn, max_steps=max_steps)
    assert estimator.get_variable_value('at') == max_steps - 1
