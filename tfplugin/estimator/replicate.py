# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model_fn that runs on several devices of one process."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import os
from collections.abc import Collection
from collections.abc import Sequence
from typing import Any
from typing import Optional

import tensorflow as tf

from tfplugin import types
from tfplugin.distribute import local_devices
from tfplugin.distribute.towers import synchronized_moments
from tfplugin.distribute.towers import tower_strategy
from tfplugin.distribute.towers import tower_weights
from tfplugin.estimator import batch_sharding
from tfplugin.estimator import decorator_stack
from tfplugin.estimator import joined_spec
from tfplugin.estimator import model_fn as model_fn_lib
from tfplugin.estimator import split_model
from tfplugin.estimator import training_spec

tf1 = tf.compat.v1

# The engine that is to replace the towers, while it does not do so yet.
_ONE_GRAPH = os.environ.get('TFPLUGIN_ONE_GRAPH') == '1'
_BATCH_NORM = ('mean', 'first', 'sync')


def replicate_model_fn(
    model_fn: Optional[types.ModelFn] = None,
    loss_reduction: Optional[str] = None,
    devices: Optional[Sequence[str]] = None,
    *,
    broadcast: Collection[str] = (),
    replicate_eval: bool = True,
    batch_norm: str = 'mean',
) -> types.ModelFn:
  """Returns a model_fn that splits each batch over several devices.

  The batch is split along its first dimension, the model_fn is built once per
  device (a *tower*), all towers share one set of variables, and each variable
  is updated once. Loss, gradients, metrics, predictions and exports are as on
  one device with the whole batch, for every batch size: not divisible by the
  number of towers, smaller than it, or not known before the step. The model_fn
  stays as it is, with a plain `tf.compat.v1.train` optimizer or a
  `tfplugin.TowerOptimizer`; checkpoints have the names of one device and can be
  moved there and back.

  Rules:
    * Tower 0 has no name scope of its own, tower i is in `tower_<i>`. The
      reduced loss is the tensor `loss`.
    * loss = sum{towers} weight * loss[tower] with the tower's share of the rows
      as weight. A term of the loss that is a sum over the rows is added up, a
      mean or a term without rows is averaged: the ops that made the loss tell.
      Losses of `tf.compat.v1.losses` and `tf.keras.losses` that divide by a
      count divide by the count of the whole batch. A division that you write
      yourself, such as a sum of masked losses over the sum of the mask, is the
      tower's own. A loss that is neither sum nor mean is refused.
    * `tf.gradients` with respect to variables returns the gradient of the whole
      batch in each tower. A changed one (clipped, decayed) is applied as tower
      0 changed it.
    * A variable that the model_fn writes by itself is written once, with the
      value of one device: sums over rows are added up, means averaged, slices
      put together, here and where a value was made of them by constants,
      variables and gradients. Any other value (a maximum, a variance, a number
      of rows that is a Python constant) is refused, unless the variable has an
      `aggregation`: with MEAN it takes the row-weighted mean of the towers, as
      the moving statistics of batch normalisation do (see `batch_norm`).
    * Metrics share their variables; towers update them in turn. A metric of
      the loss sees the loss of the batch. The mean of another number per batch
      weighs each tower's number by its rows: right for means of rows. Any other
      metric of such a number (a maximum, say) sees it once per tower.
      The mean over batches of a tensor is refused.
    * In training a metric (a variable of METRIC_VARIABLES) is updated by the
      towers in turn; a number that it takes for each batch is the batch's. Its
      update in tower 0 has seen all rows, and what
      tower 0 makes of the returned loss (a summary, say) is of the batch, and
      so are scalar summaries of sums and means over the rows. Other summaries
      are tower 0's, with a warning if they are scalar.
    * Predictions are concatenated; where the size of a row depends on the
      batch, rows are filled up with zeros. A prediction without rows must be a
      sum, a mean, or the same for all rows.
    * `apply_gradients` and assignments in a `tf.cond` are made once, where
      their values are those of all towers, such as accumulated gradients.
    * train_op, hooks and scaffold come from tower 0.
    * Scalars in the batch go to every tower.
    * Where the batch has fewer rows than there are towers, some get none: the
      ops of the model must take that. Canned linear estimators with sparse
      columns do not.

  Args:
    model_fn: As for `tf.estimator.Estimator`; `features` and `labels` are
      nests of tensors `[batch, ...]`, dense, sparse or ragged. Left out, a
      decorator is returned, for `@replicate_model_fn(devices=...)`.
    loss_reduction: How the model_fn reduces its loss, one of
      `tf.compat.v1.losses.Reduction`: with SUM losses of towers are added up, a
      regularisation loss with them, with the others they are averaged. By
      default it is found for each term of a loss. `tf.recompute_grad` must not
      be used with SUM, whose gradients it sums over the towers twice.
    devices: Device strings, one per tower. By default the local GPUs, or else
      the logical CPUs, found without initialising them.
    broadcast: Keys of features or labels that are passed on whole.
    replicate_eval: Whether to split the batch in EVAL too; False runs the
      evaluation on the first device.
    batch_norm: The batch normalisation in training. 'mean': it normalises
      within a tower, and moving statistics are the means over the towers,
      weighted by their rows. 'first': likewise, but moving statistics come from
      the first tower. 'sync': it normalises with the moments of the whole
      batch, as one device does, for the price of two sums over the towers per
      layer; for Keras layers and `tf.layers`, fused or not, but without
      `virtual_batch_size`.

  Returns:
    A model_fn `(features, labels=None, mode=None, params=None, config=None)`,
    whatever `model_fn` takes of them: an Estimator may be given the `params` of
    a canned one.

  Raises:
    TypeError: `model_fn` is not callable, `devices` not a list of strings.
    ValueError: `loss_reduction` is NONE or unknown, or so is `batch_norm`;
      `devices` is empty; the model_fn does not take `features`. When called: a
      batch without a first dimension, labels for a model_fn that takes none, a
      loss that is neither sum nor mean over the rows, no loss, no train_op,
      specs that differ between towers.
    RuntimeError: When called: inside another strategy, or towers that make
      different variables, losses or calls of an optimizer.

  Differences from tf.contrib:
    * Every batch size works, in every mode.
    * Variables are shared however they are made, with no need for reuse.
    * SUM_BY_NONZERO_WEIGHTS divides by the count of the batch, not of a tower.
    * Metrics equal the metrics of one device, additive or not.
    * Class labels of a ClassificationOutput are concatenated as scores are, and
      so are the predictions of EVAL.
    * Nothing is kept in the graph's collections.
    * `TowerOptimizer` is not needed.

  Example:
    >>> import numpy as np
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> tf1 = tf.compat.v1
    >>> @tfplugin.replicate_model_fn(devices=['/cpu:0', '/cpu:0'])
    ... def model_fn(features, labels, mode):
    ...   w = tf1.get_variable('w', initializer=[[0.0]])
    ...   loss = tf1.losses.mean_squared_error(labels, features @ w)
    ...   optimizer = tf1.train.GradientDescentOptimizer(0.1)
    ...   train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    ...   return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    >>> def input_fn():
    ...   x = np.array([[1.0], [2.0], [3.0]], np.float32)
    ...   return tf.data.Dataset.from_tensors((x, 2.0 * x))
    >>> estimator = tf.estimator.Estimator(model_fn)
    >>> _ = estimator.train(input_fn)
    >>> # w = 0.1 * 2 * mean(x * 2 x) = 0.1 * 2 * 28 / 3
    >>> print(round(float(estimator.get_variable_value('w')[0, 0]), 4))
    1.8667

  References:
    The function of the same name in `tf.contrib.estimator` of TensorFlow 1.15.
  """
  tower_weights.check_reduction(loss_reduction)
  if batch_norm not in _BATCH_NORM:
    raise ValueError(f'`batch_norm` must be one of {_BATCH_NORM}. '
                     f'Received: {batch_norm!r}. Leave it out for the mean.')
  if devices is not None:
    local_devices.check_devices(devices)
  if model_fn is None:
    return functools.partial(
        replicate_model_fn, loss_reduction=loss_reduction, devices=devices,
        broadcast=broadcast, replicate_eval=replicate_eval,
        batch_norm=batch_norm)

  def run(call: model_fn_lib.ModelFnCall):
    is_eval = call.mode == tf.estimator.ModeKeys.EVAL
    names = local_devices.check_devices(devices)
    if is_eval and not replicate_eval:
      names = names[:1]
    return _run_towers(call, loss_reduction, names, broadcast, batch_norm)

  return model_fn_lib.decorate(
      model_fn, run, decorator_stack.REPLICATE, takes_all=True)


def _run_towers(call: model_fn_lib.ModelFnCall, loss_reduction: Optional[str],
                devices: Sequence[str], broadcast: Collection[str],
                batch_norm: str):
  """Builds the towers of one call and reduces their specs."""
  training_spec.check_no_strategy('replicate_model_fn')
  if _ONE_GRAPH:
    return _run_split(call, devices, broadcast, batch_norm)
  arguments = call.arguments
  shards = batch_sharding.split_batch(
      arguments['features'], arguments.get('labels'), len(devices), broadcast)
  weights = tower_weights.weights_of(shards.shares(), loss_reduction)
  if batch_norm == 'first':
    # The first tower has rows whenever any tower has.
    means = [1.0] + [0.0] * (len(devices) - 1)
    weights = dataclasses.replace(weights, means=means)

  def build(tower: int):
    return call(features=shards.features[tower], labels=shards.labels[tower],
                **_own_params(arguments))

  strategy = tower_strategy.TowerStrategy(devices)
  training = call.mode == tf.estimator.ModeKeys.TRAIN
  with contextlib.ExitStack() as stack:
    stack.enter_context(strategy.scope())
    if batch_norm == 'sync':
      stack.enter_context(synchronized_moments.in_batch_norm(strategy))
    run, specs = strategy.build_towers(
        build, weights,
        batch=list(zip(shards.features, shards.labels)),
        evaluates=call.mode == tf.estimator.ModeKeys.EVAL)
  if training:
    training_spec.check_spec(specs[0], decorator_stack.REPLICATE)
  return joined_spec.join(
      call.mode, run, specs, weights.loss, shards.rows)


def _run_split(call: model_fn_lib.ModelFnCall, devices: Sequence[str],
               broadcast: Collection[str], batch_norm: str):
  """Builds the model once, and moves its row-wise ops to the devices."""
  features, labels = batch_sharding.as_tensors(
      call.arguments['features'], call.arguments.get('labels'), broadcast)
  spec = split_model.build(
      lambda: call(features=features, labels=labels,
                   **_own_params(call.arguments)),
      features, labels, devices, broadcast, batch_norm)
  if call.mode == tf.estimator.ModeKeys.TRAIN:
    training_spec.check_spec(spec, decorator_stack.REPLICATE)
  return spec


def _own_params(arguments: dict[str, Any]) -> dict[str, Any]:
  """Returns a copy of `params`: no tower sees the changes of another one."""
  return ({'params': copy.deepcopy(arguments['params'])}
          if 'params' in arguments else {})
