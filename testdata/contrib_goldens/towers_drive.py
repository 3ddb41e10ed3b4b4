# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drives scenarios of TowerOptimizer and replicate_model_fn."""

from __future__ import annotations

import numpy as np

from testdata.contrib_goldens import models


def _layers(tf1, kind, x):
  """Returns the output of the model `kind` for the rows of x."""
  if kind == 'layers':
    return tf1.layers.dense(x, 1, kernel_initializer=tf1.zeros_initializer())
  if kind == 'keras':
    return tf1.keras.layers.Dense(1, kernel_initializer='zeros')(x)
  weights = tf1.get_variable(
      'w', [x.shape[1], 1], x.dtype.base_dtype, tf1.zeros_initializer())
  bias = tf1.get_variable('b', [1], x.dtype.base_dtype,
                          tf1.zeros_initializer())
  return tf1.matmul(x, weights) + bias


def _only_x(features):
  """Finds the rows in whatever structure the features have."""
  while not hasattr(features, 'dtype'):
    if isinstance(features, dict):
      features = features['x'] if 'x' in features else features['a']
    else:
      features = features[0]
  return features


def _loss(tf1, scenario, y, labels, features):
  weights = 1.0
  if isinstance(features, dict) and 'weight' in features:
    weights = features['weight']
  if isinstance(features, dict) and 'factor' in features:
    weights = features['factor'] * tf1.ones_like(labels)
  return tf1.losses.mean_squared_error(
      labels, y, weights=weights, reduction=scenario['reduction'])


def _train_op(tf1, contrib, scenario, loss, calls):
  step = tf1.train.get_global_step()
  specs = scenario.get('optimizers') or [scenario['optimizer']]
  if scenario.get('only_in_first_tower') and calls > 1:
    return tf1.no_op()
  ops = []
  for number, spec in enumerate(specs):
    optimizer = models.make_optimizer(tf1, spec)
    if not scenario.get('plain_optimizer'):
      optimizer = contrib.estimator.TowerOptimizer(optimizer)
    ops.append(optimizer.minimize(loss, step if number == 0 else None))
  return tf1.group(*ops)


def _metrics(tf1, scenario, labels, y):
  if scenario.get('metrics') == 'additive':
    return {'mean': tf1.metrics.mean(y),
            'mse': tf1.metrics.mean_squared_error(labels, y),
            'accuracy': tf1.metrics.accuracy(labels > 0, y > 0),
            'auc': tf1.metrics.auc(labels > 0, tf1.sigmoid(y))}
  maximum = tf1.Variable(
      0.0, trainable=False, name='maximum', collections=[
          tf1.GraphKeys.LOCAL_VARIABLES, tf1.GraphKeys.METRIC_VARIABLES])
  update = tf1.assign(maximum, tf1.maximum(maximum, tf1.reduce_max(labels)))
  return {'maximum': (tf1.identity(maximum), update)}


def _model_fn(tf1, contrib, scenario, estimator):
  """Returns the model_fn of a scenario and a list with a note per call."""
  calls = []

  def model_fn(features, labels, mode):
    calls.append(mode)
    x = _only_x(features)
    y = _layers(tf1, scenario.get('kind', 'linear'), x)
    if mode == 'infer':
      exports = None
      if scenario.get('classes'):
        classes = tf1.tile(tf1.constant([['a', 'b']]), [tf1.shape(y)[0], 1])
        exports = {'serving_default': estimator.export.ClassificationOutput(
            scores=tf1.concat([y, -y], 1), classes=classes)}
      return estimator.EstimatorSpec(
          mode, predictions={'y': y, 'twice': 2 * y}, export_outputs=exports)
    loss = _loss(tf1, scenario, y, labels, features)
    if mode == 'eval':
      return estimator.EstimatorSpec(
          mode, loss=loss, predictions={'y': y},
          eval_metric_ops=_metrics(tf1, scenario, labels, y))
    return estimator.EstimatorSpec(
        mode, loss=loss,
        train_op=_train_op(tf1, contrib, scenario, loss, len(calls)))

  return model_fn, calls


def _tensors(tf1, nest, dtype):
  if isinstance(nest, dict):
    return {key: _tensors(tf1, each, dtype) for key, each in nest.items()}
  if isinstance(nest, tuple):
    return tuple(_tensors(tf1, each, dtype) for each in nest)
  return tf1.constant(np.array(nest, dtype))


def towers(tf1, contrib, scenario):
  """Calls the replicated model_fn and runs what it returns."""
  estimator = contrib.tf_estimator
  dtype = scenario.get('dtype', 'float32')
  with tf1.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    model_fn, calls = _model_fn(tf1, contrib, scenario, estimator)
    replicated = contrib.estimator.replicate_model_fn(
        model_fn, scenario['reduction'],
        devices=['/cpu:%d' % i for i in range(scenario['towers'])])
    mode = scenario.get('mode', 'train')
    labels = (None if mode == 'infer'
              else _tensors(tf1, scenario['labels'], dtype))
    spec = replicated(features=_tensors(tf1, scenario['features'], dtype),
                      labels=labels, mode=mode)
    with tf1.Session(config=models.session_config(tf1)) as session:
      session.run([tf1.global_variables_initializer(),
                   tf1.local_variables_initializer()])
      result = {'global_names': models.names(tf1.global_variables()),
                'trainable_names': models.names(tf1.trainable_variables())}
      result.update(_run(tf1, session, scenario, spec, step, mode))
      return result


def _run(tf1, session, scenario, spec, step, mode):
  if mode == 'infer':
    result = {'predictions': models.plain(session.run(spec.predictions))}
    if scenario.get('classes'):
      output = spec.export_outputs['serving_default']
      result['scores'] = models.plain(session.run(output.scores))
      result['classes'] = models.plain(session.run(output.classes))
    return result
  if mode == 'eval':
    for var in tf1.trainable_variables():
      session.run(var.assign(np.array(scenario['weights'][var.op.name])))
    ops = spec.eval_metric_ops
    loss, _ = session.run([spec.loss, {k: v[1] for k, v in ops.items()}])
    return {'loss': models.plain(loss),
            'predictions': models.plain(session.run(spec.predictions)),
            'metrics': models.plain(
                session.run({k: v[0] for k, v in ops.items()}))}
  variables = {v.op.name: v for v in tf1.trainable_variables()}
  steps = []
  for _ in range(scenario['steps']):
    loss, _ = session.run([spec.loss, spec.train_op])
    values = models.plain(session.run(variables))
    values['loss'] = models.plain(loss)
    steps.append(values)
  return {'steps': steps, 'global_step': int(session.run(step))}
