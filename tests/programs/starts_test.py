# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small programs of the kinds that public reports tell of: starts and ends.

Where the first values come from, and who ends the training, in every form.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import wrapper_forms

tf1 = tf.compat.v1

FORMS = wrapper_forms.FORMS
_estimator = wrapper_forms.estimator
_input_fn = wrapper_forms.input_fn


def _model_fn(rate=0.0, parts=None, start=lambda: None, hooks=lambda loss: ()):
  """Returns a model_fn; each step takes `rate` off each row of `body/table`.

  Args:
    rate: The learning rate.
    parts: The number of parts of the table.
    start: Called when the variables are there.
    hooks: Makes hooks of the model's own.
  """

  def model_fn(features, labels, mode):
    del labels
    table = tf1.get_variable(
        'body/table', [4, 1], initializer=tf1.zeros_initializer(),
        partitioner=tf1.fixed_size_partitioner(parts) if parts else None)
    head = tf1.get_variable('head/w', initializer=[[2.0]])
    start()
    rows = tf.concat(list(table), 0) if parts else table
    loss = tf.reduce_mean(features) * (
        tf.reduce_sum(rows) + 0.0 * tf.reduce_sum(head))
    return tf1.estimator.EstimatorSpec(
        mode, loss=loss, train_op=wrapper_forms.minimize(loss, rate),
        training_hooks=list(hooks(loss)))

  return model_fn


_TABLE = [[5.0], [6.0], [7.0], [8.0]]


@pytest.fixture(name='pretrained')
def _pretrained(tmp_path):
  """A checkpoint of another program, with the table and a head."""
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('body/table', initializer=_TABLE)
    tf1.get_variable('head/w', initializer=[[9.0]])
    session.run(tf1.global_variables_initializer())
    return tf1.train.Saver().save(session, str(tmp_path / 'old/model.ckpt'))


class _WarmStart(tf1.train.SessionRunHook):
  """A warm start from a hook: the graph is built, but not finalized."""

  def __init__(self, path):
    self._path = path

  def begin(self):
    tf1.train.warm_start(self._path, 'body/.*')


def _settings(path, names='body/.*'):
  return tf.estimator.WarmStartSettings(path, vars_to_warm_start=names)


_MAPS = {'init_from_checkpoint': {'body/table': 'body/table'},
         'scope': {'body/': 'body/'}}


def _start(how, path):
  """Returns the `start` of a model_fn."""
  return (lambda: tf1.train.init_from_checkpoint(path, _MAPS[how])) if (
      how in _MAPS) else lambda: None


@pytest.mark.sampled(28)
@pytest.mark.parametrize('how', [
    'settings', 'init_from_checkpoint', 'scope', 'hook'])
@pytest.mark.parametrize('parts', [None, 2], ids=['whole', 'parts'])
@pytest.mark.parametrize('form', FORMS)
def test_a_table_starts_from_another_programs_checkpoint(
    form, parts, how, pretrained, tmp_path, behavior):
  del behavior
  estimator = _estimator(
      form, _model_fn(parts=parts, start=_start(how, pretrained)),
      tmp_path / 'model',
      warm_start_from=_settings(pretrained) if how == 'settings' else None)
  estimator.train(_input_fn(), max_steps=2,
                  hooks=[_WarmStart(pretrained)] if how == 'hook' else [])
  np.testing.assert_array_equal(
      estimator.get_variable_value('body/table'), _TABLE)
  assert estimator.get_variable_value('head/w') == 2.0


@pytest.mark.sampled(28)
@pytest.mark.parametrize('how', ['settings', 'init_from_checkpoint', 'scope'])
@pytest.mark.parametrize('parts', [None, 2], ids=['whole', 'parts'])
@pytest.mark.parametrize('form', FORMS)
def test_a_warm_start_is_not_made_again_when_a_training_goes_on(
    form, parts, how, pretrained, tmp_path, behavior):
  """The same program is started again, with its arguments."""
  del behavior
  values = []
  for max_steps in (2, 4):
    estimator = _estimator(
        form, _model_fn(
            rate=1.0, parts=parts, start=_start(how, pretrained)),
        tmp_path / 'model',
        warm_start_from=_settings(pretrained) if how == 'settings' else None)
    estimator.train(_input_fn(), max_steps=max_steps)
    values.append(estimator.get_variable_value('body/table'))
  assert estimator.get_variable_value('global_step') == 4
  assert np.all(values[0] < _TABLE) and np.all(values[1] < values[0])


def _receive():
  x = tf1.placeholder(tf.float32, [None, 1])
  return tf.estimator.export.ServingInputReceiver({'x': x}, {'x': x})


@pytest.mark.sampled(14)
@pytest.mark.parametrize('form', FORMS)
def test_a_model_starts_from_an_export(form, pretrained, tmp_path, behavior):
  """A SavedModel that the same form has written."""
  del behavior

  def model_fn(features, labels, mode):
    if mode == tf.estimator.ModeKeys.PREDICT:
      table = tf1.get_variable('body/table', [4, 1])
      tf1.get_variable('head/w', [1, 1])
      return tf1.estimator.EstimatorSpec(
          mode, {'table': table + 0.0 * features['x'][0]})
    return _model_fn()(features, labels, mode)

  first = _estimator(
      form, model_fn, tmp_path / 'first', warm_start_from=pretrained)
  first.train(_input_fn(), max_steps=1)
  export = first.export_saved_model(str(tmp_path / 'export'), _receive)
  second = _estimator(
      form, model_fn, tmp_path / 'second', warm_start_from=export.decode())
  second.train(_input_fn(), max_steps=1)
  np.testing.assert_array_equal(
      second.get_variable_value('body/table'), _TABLE)
  assert second.get_variable_value('head/w') == 9.0


_NAN = float('nan')
# Hooks of TensorFlow's that end a training, or look at its end.
ENDING_HOOKS = {
    'nan': lambda loss: [tf1.train.NanTensorHook(
        tf.where(tf1.train.get_global_step() < 3, 0.0, _NAN),
        fail_on_nan_loss=False)],
    'steps': lambda loss: [tf1.train.StopAtStepHook(num_steps=3)],
    'last': lambda loss: [tf1.train.StopAtStepHook(last_step=3)],
}


@pytest.mark.sampled(28)
@pytest.mark.parametrize('name', ENDING_HOOKS)
@pytest.mark.parametrize('form', FORMS)
def test_a_hook_of_the_model_ends_the_training(form, name, tmp_path, behavior):
  del behavior
  estimator = _estimator(
      form, _model_fn(hooks=ENDING_HOOKS[name]), tmp_path)
  estimator.train(_input_fn(), max_steps=50)
  assert 3 <= estimator.get_variable_value('global_step') <= 4


@pytest.mark.sampled(14)
@pytest.mark.parametrize('form', FORMS)
def test_a_hook_reads_the_last_values(form, tmp_path, behavior):
  """FinalOpsHook evaluates at the end; a feed selects what it reads."""
  del behavior
  made = []

  def hooks(loss):
    scale = tf1.placeholder_with_default(1.0, [])
    made.append(tf1.train.FinalOpsHook(
        {'step': tf1.train.get_global_step().read_value() * 1,
         'scaled': scale * 1.0}, {scale: 4.0}))
    return [made[-1], tf1.train.FeedFnHook(lambda: {scale: 2.0}),
            tf1.train.StepCounterHook(1, output_dir=str(tmp_path / 'rate'))]

  estimator = _estimator(
      form, _model_fn(hooks=hooks), tmp_path / 'model')
  estimator.train(_input_fn(), max_steps=3)
  values, = [hook.final_ops_values for hook in made
             if hook.final_ops_values is not None]
  assert values == {'step': 3, 'scaled': 4.0}


@pytest.mark.sampled(28)
@pytest.mark.parametrize('batches', [0, 1, 5])
@pytest.mark.parametrize('form', FORMS)
def test_one_epoch_of_an_odd_number_of_batches(
    form, batches, tmp_path, behavior):
  del behavior
  estimator = _estimator(form, _model_fn(rate=1.0), tmp_path)
  estimator.train(_input_fn(batches))
  steps = estimator.get_variable_value('global_step')
  # As under MirroredStrategy: each device takes a batch, or there is no step.
  assert steps == batches // (
      2 if form in wrapper_forms.OF_TWO_BATCHES else 1)


@pytest.mark.sampled(4)
@pytest.mark.parametrize('form', wrapper_forms.STRATEGIES)
def test_a_config_gets_its_strategy_later(form, tmp_path, behavior):
  """A program has one configuration, and a flag decides on the strategy."""
  del behavior
  config = tf1.estimator.RunConfig(str(tmp_path)).replace(
      train_distribute=wrapper_forms.STRATEGIES[form]())
  estimator = tf1.estimator.Estimator(_model_fn(rate=1.0), config=config)
  estimator.train(_input_fn(), max_steps=2)
  assert estimator.get_variable_value('global_step') == 2


@pytest.mark.sampled(14)
@pytest.mark.parametrize('form', FORMS)
def test_epochs_in_a_loop_of_the_program(form, tmp_path, behavior):
  """One Estimator trains and evaluates in turn, with `steps`."""
  del behavior
  estimator = _estimator(form, _model_fn(rate=1.0), tmp_path)
  seen = []
  for _ in range(3):
    estimator.train(_input_fn(4), steps=2)
    seen.append(estimator.evaluate(_input_fn(1), steps=1)['loss'])
  assert estimator.get_variable_value('global_step') == 6
  assert seen == sorted(seen, reverse=True)
