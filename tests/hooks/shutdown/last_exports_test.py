# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of exports in a process that trains, evaluates and exports.

Masters and evaluators of clusters: `distributed/launchers_test.py`.
"""

import pathlib

import pytest
import tensorflow as tf

from tests.helpers import wrapper_forms
from tfplugin import estimator as estimator_lib

tf1 = tf.compat.v1

_BATCHES = 4


def _model_fn(features, labels, mode):
  del labels
  w = tf1.get_variable('w', initializer=[[1.0]])
  prediction = features @ w
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.EstimatorSpec(mode, {'p': prediction})
  loss = tf.reduce_mean(prediction)
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=wrapper_forms.minimize(loss, 0.125))


def _receive():
  x = tf1.placeholder(tf.float32, [None, 1])
  return tf.estimator.export.TensorServingInputReceiver(x, x)


def _train(estimator, exporter, max_steps=None):
  return estimator_lib.train_and_evaluate(
      estimator,
      tf.estimator.TrainSpec(wrapper_forms.input_fn(_BATCHES), max_steps),
      tf.estimator.EvalSpec(wrapper_forms.input_fn(1), exporters=exporter))


def _exported(path):
  return float(tf.train.load_checkpoint(
      f'{path}/variables/variables').get_tensor('w')[0, 0])


@pytest.mark.sampled(6)
@pytest.mark.parametrize('max_steps', [None, 1000])
@pytest.mark.parametrize('form', wrapper_forms.FORMS)
def test_a_final_exporter_exports_when_the_input_ends(
    form, max_steps, tmp_path, behavior):
  """The result has its path, and the export the trained value."""
  del behavior
  estimator = wrapper_forms.estimator(form, _model_fn, tmp_path)
  metrics, (path,) = _train(
      estimator, tf.estimator.FinalExporter('e', _receive), max_steps)
  found = pathlib.Path(tf.compat.as_str(path))
  assert list((tmp_path / 'export/e').iterdir()) == [found]
  assert _exported(found) == estimator.get_variable_value('w')[0, 0] < 1.0
  assert metrics['global_step'] in (_BATCHES, _BATCHES / 2)


@pytest.mark.parametrize('kind', [
    tf.estimator.LatestExporter, tf.estimator.BestExporter])
def test_an_exporter_that_has_exported_is_not_called_again(kind, tmp_path):
  estimator = wrapper_forms.estimator('clip', _model_fn, tmp_path)
  _, (path,) = _train(
      estimator, kind('e', serving_input_receiver_fn=_receive))
  exports = list((tmp_path / 'export/e').iterdir())
  assert [str(each) for each in exports] == [tf.compat.as_str(path)]


def test_a_training_without_exporters_has_no_exports(tmp_path):
  estimator = wrapper_forms.estimator('clip', _model_fn, tmp_path)
  assert not _train(estimator, None)[1]


def test_a_training_that_fails_exports_nothing(tmp_path):

  class FailAtTheEnd(tf1.train.SessionRunHook):

    def end(self, session):
      raise RuntimeError('at the end')

  estimator = wrapper_forms.estimator('clip', _model_fn, tmp_path)
  with pytest.raises(RuntimeError, match='at the end'):
    estimator_lib.train_and_evaluate(
        estimator, tf.estimator.TrainSpec(
            wrapper_forms.input_fn(_BATCHES), hooks=[FailAtTheEnd()]),
        tf.estimator.EvalSpec(
            wrapper_forms.input_fn(1),
            exporters=tf.estimator.FinalExporter('e', _receive)))
  assert not (tmp_path / 'export').exists()
