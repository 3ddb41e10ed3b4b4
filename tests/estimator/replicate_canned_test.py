# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the model_fns of canned estimators in towers, against one device."""

import shutil

import numpy as np
import pytest
import tensorflow as tf

import tfplugin

tf1 = tf.compat.v1

pytestmark = pytest.mark.filterwarnings('ignore:.*deprecated')

_ROWS = np.random.RandomState(0).randn(7, 4).astype(np.float32)
_WORDS = np.array([['a', ''], ['b', 'c'], ['a', 'c'], ['', 'b'], ['b', 'd'],
                   ['e', ''], ['a', 'a']])
_LABELS = (_ROWS.sum(axis=1) > 0).astype(np.int64)
_NUMERIC = [tf.feature_column.numeric_column('x', (4,))]
_SPARSE = [tf.feature_column.categorical_column_with_hash_bucket('words', 8)]
# Vectors of ids, whose number the column reads from their shape.
_IDS = np.arange(7) % 5
_EMBEDDED = [tf.feature_column.embedding_column(
    tf.feature_column.categorical_column_with_identity('ids', 6), 3)]
_MEAN = tf1.losses.Reduction.SUM_OVER_BATCH_SIZE

_CANNED = {
    'DNNClassifier': lambda **kwargs: tf1.estimator.DNNClassifier(
        [3], _NUMERIC, batch_norm=True, loss_reduction=_MEAN, **kwargs),
    'embedding column': lambda **kwargs: tf1.estimator.DNNClassifier(
        [3], _EMBEDDED, n_classes=3, **kwargs),
    'LinearClassifier': lambda **kwargs: tf1.estimator.LinearClassifier(
        _NUMERIC + _SPARSE, loss_reduction=_MEAN, **kwargs),
    'DNNLinearCombinedClassifier': lambda **kwargs: (
        tf1.estimator.DNNLinearCombinedClassifier(
            linear_feature_columns=_SPARSE, dnn_feature_columns=_NUMERIC,
            dnn_hidden_units=[2], loss_reduction=_MEAN, **kwargs)),
    # Their default reduction is the sum.
    'LinearRegressor': lambda **kwargs: tf1.estimator.LinearRegressor(
        _NUMERIC, **kwargs),
    'wide and deep': lambda **kwargs: (
        tf1.estimator.DNNLinearCombinedClassifier(
            linear_feature_columns=_SPARSE, dnn_feature_columns=_NUMERIC,
            dnn_hidden_units=[2], **kwargs)),
}


def _input_fn():
  # Batches of 5 and 2 rows.
  return tf1.data.Dataset.from_tensor_slices(
      ({'x': _ROWS, 'words': _WORDS, 'ids': _IDS}, _LABELS)).batch(5)


def _serving_input_fn():
  features = {'ids': tf1.placeholder(tf.int64, [None])}
  return tf1.estimator.export.ServingInputReceiver(features, features)


def _served(path, signature):
  """Returns the outputs of an export for all rows, by name."""
  with tf.Graph().as_default(), tf1.Session() as session:
    loaded = tf1.saved_model.load(session, ['serve'], path)
    served = loaded.signature_def[signature]
    return session.run(
        {name: tensor.name for name, tensor in served.outputs.items()},
        {served.inputs['ids'].name: _IDS})


def _assert_same(found, expected):
  assert sorted(found) == sorted(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(
        found[name], value, rtol=1e-3, atol=1e-5, err_msg=name)


@pytest.mark.sampled(4)
@pytest.mark.parametrize('canned', _CANNED)
def test_canned_model_fn_equals_one_device(canned, tmp_path):
  config = tf.estimator.RunConfig(tf_random_seed=1, save_summary_steps=None)
  plain = _CANNED[canned](config=config, model_dir=str(tmp_path / 'plain'))
  plain.train(_input_fn, steps=1)
  shutil.copytree(tmp_path / 'plain', tmp_path / 'towers')
  towers = tf1.estimator.Estimator(
      tfplugin.replicate_model_fn(
          plain.model_fn, devices=['/cpu:0', '/cpu:1'], batch_norm='sync'),
      str(tmp_path / 'towers'), config)
  results = []
  for estimator in (plain, towers):
    estimator.train(_input_fn)
    variables = {name: estimator.get_variable_value(name)
                 for name in estimator.get_variable_names()}
    rows = list(estimator.predict(_input_fn))
    results.append((variables, estimator.evaluate(_input_fn), {
        key: [row[key] for row in rows]
        for key in rows[0] if key in ('logits', 'predictions')}))
  for found, expected in zip(results[1], results[0]):
    _assert_same(found, expected)


def test_predictions_and_export_of_an_embedding_equal_one_device(
    behavior, tmp_path):
  plain = _CANNED['embedding column'](model_dir=str(tmp_path / 'model'))
  plain.train(_input_fn, steps=1)
  towers = tf1.estimator.Estimator(
      tfplugin.replicate_model_fn(
          plain.model_fn, devices=['/cpu:0', '/cpu:1']), plain.model_dir)
  found, expected = (list(estimator.predict(_input_fn))
                     for estimator in (towers, plain))
  assert len(found) == len(expected) == 7
  for row, same in zip(found, expected):
    assert row.pop('classes') == same.pop('classes')
    assert list(row.pop('all_classes')) == list(same.pop('all_classes'))
    _assert_same(row, same)
  paths = [
      estimator.export_saved_model(str(tmp_path / name), _serving_input_fn)
      for name, estimator in (('plain', plain), ('towers', towers))]
  expected, found = (_served(path, 'predict') for path in paths)
  assert found['classes'].tolist() == expected['classes'].tolist()
  assert found['all_classes'].tolist() == [[b'0', b'1', b'2']] * 7
  for name in ('logits', 'probabilities', 'class_ids', 'all_class_ids'):
    assert len(found[name]) == 7
    np.testing.assert_allclose(found[name], expected[name], rtol=1e-5)
