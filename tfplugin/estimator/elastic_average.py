# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model_fn that trains copies, tied to a common centre by a spring."""

from __future__ import annotations

import functools
from typing import Optional

import tensorflow as tf

from tfplugin import types
from tfplugin.distribute import optimizer_interception
from tfplugin.estimator import decorator_stack
from tfplugin.estimator import elastic_spec
from tfplugin.estimator import model_fn as model_fn_lib
from tfplugin.estimator import training_spec
from tfplugin.ops import elastic_arguments
from tfplugin.optimizers import elastic_average as elastic_average_lib
from tfplugin.optimizers import elastic_custom_getter

tf1 = tf.compat.v1

_Optimizer = elastic_average_lib.ElasticAverageOptimizer


def elastic_average(
    model_fn: Optional[types.ModelFn] = None,
    *,
    num_worker: Optional[int] = None,
    communication_period: int = 10,
    moving_rate: Optional[float] = None,
    rho: Optional[float] = 0.0,
    synchronous: bool = False,
    update_order: str = 'gradient_first',
    count_steps: str = 'communications',
    statistics: str = 'average',
    use_locking: bool = True,
) -> types.ModelFn:
  """Returns a model_fn that trains with elastic averaging.

  For an Estimator in a cluster of parameter servers that is described by
  `TF_CONFIG`: chief and workers train copies of the model, each its own, and
  every `communication_period` steps a copy and the centre, on the parameter
  servers, move towards each other. The rule, and the numbers, are those of
  `tfplugin.ElasticAverageOptimizer`; see it. The model_fn stays as it is, with
  one plain `tf.compat.v1.train` optimizer or several, made anywhere, and
  `minimize` or gradients of its own; variables may come from `get_variable`,
  layers of TensorFlow or Keras, or `tf.Variable`.

  Added to what the model_fn returns in TRAIN:
    * A hook that starts each worker from the centre; it goes first.
    * A Saver in the scaffold: checkpoints have the centre under the names of
      the plain model. All else of a scaffold is kept. A Saver of the model_fn's
      own is made anew, with its arguments, for the centre; what an `init_fn`
      restores or assigns on the chief goes to the centre.
    * If the RunConfig asks for checkpoints, the hook that writes them and
      restores the chief's optimizer state.
  EVAL and PREDICT run the plain model_fn on such checkpoints, and so does
  training without the decorator. Warm starts set the centre.

  A model_fn that has a `tfplugin.ElasticAverageOptimizer` with a getter already
  is called as it is, and brings hooks and Saver itself.

  The penalty of `rho` is added when gradients are applied, after whatever the
  model_fn did to them, to each that is not None. A model_fn that advances
  `global_step` by itself, and not by an optimizer, counts local steps.

  Args:
    model_fn: As for `tf.estimator.Estimator`. Left out, a decorator is
      returned: `@elastic_average`, `@elastic_average(rho=0.1)`.
    num_worker: How many workers share the centre, the chief included. None:
      as many as the RunConfig knows.
    communication_period: Local steps from one communication to the next.
    moving_rate: The share of the difference that moves, in [0, 1]. None:
      0.9 / communication_period / num_worker.
    rho: The strength of the exploration penalty; 0.0 for none. None:
      moving_rate / learning rate, the default of the optimizer.
    synchronous: Whether all workers start together.
    update_order: `'gradient_first'`, or the paper's `'elastic_first'`.
    count_steps: What `global_step` counts: `'communications'` or `'local'`
      steps.
    statistics: What becomes of floating point variables that are not trained:
      `'average'` or `'shared'`.
    use_locking: Whether the centre is updated under a lock.

  Returns:
    A model_fn with the same signature.

  Raises:
    TypeError: An argument has the wrong type. When called: the model_fn returns
      no EstimatorSpec.
    ValueError: An argument is out of range; the model_fn does not take
      `features`; a decorator below this one cannot be there. When called: no
      loss, no train_op, no v1 optimizer, a scaffold or hook whose Saver cannot
      be given the centre, or workers without a parameter server.
    RuntimeError: When called: inside a tf.distribute strategy.

  Differences from tf.contrib: it had the optimizer only, and no hook or Saver
  for Estimator.

  Example:
    >>> import numpy as np
    >>> import tensorflow as tf
    >>> import tfplugin.estimator
    >>> tf1 = tf.compat.v1
    >>> @tfplugin.estimator.elastic_average(
    ...     communication_period=2, moving_rate=0.5)
    ... def model_fn(features, labels, mode):
    ...   w = tf1.get_variable('w', initializer=0.0)
    ...   optimizer = tf1.train.GradientDescentOptimizer(1.0)
    ...   loss = w * features
    ...   train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    ...   return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    >>> def input_fn():
    ...   return tf.data.Dataset.from_tensors(tf.constant(-1.0)).repeat(4)
    >>> estimator = tf.estimator.Estimator(model_fn)
    >>> _ = estimator.train(input_fn)
    >>> # Copy 2, centre 0 -> 1, 1; then 3, 1 -> 2, 2.
    >>> for name in estimator.get_variable_names():
    ...   print(name, estimator.get_variable_value(name))
    global_step 2
    w 2.0

  References:
    Zhang, Choromanska and LeCun. Deep learning with Elastic Averaging SGD.
    NeurIPS 2015. https://arxiv.org/abs/1412.6651
  """
  elastic_arguments.check_settings(
      1 if num_worker is None else num_worker, communication_period,
      moving_rate, rho, update_order, count_steps)
  elastic_arguments.check_choice('statistics', statistics,
                                 elastic_arguments.STATISTICS_POLICIES)
  settings = dict(
      communication_period=communication_period, moving_rate=moving_rate,
      rho=rho, update_order=update_order, count_steps=count_steps,
      use_locking=use_locking)
  if model_fn is None:
    return functools.partial(
        elastic_average, num_worker=num_worker, synchronous=synchronous,
        statistics=statistics, **settings)

  def run(call: model_fn_lib.ModelFnCall):
    if call.mode != tf.estimator.ModeKeys.TRAIN:
      return call()
    worker = elastic_spec.worker_of(call.config, num_worker)
    getter = elastic_custom_getter.ElasticAverageCustomGetter(
        worker.device, statistics=statistics)
    return _train(call, worker, getter, synchronous, settings)

  return model_fn_lib.decorate(model_fn, run, decorator_stack.ELASTIC)


def _train(call: model_fn_lib.ModelFnCall, worker: elastic_spec.Worker,
           getter: elastic_custom_getter.ElasticAverageCustomGetter,
           synchronous: bool, settings: dict):
  """Builds the model_fn with a centre, and completes its spec."""
  if optimizer_interception.in_strategy():
    raise RuntimeError(
        '`elastic_average` must not be used inside a tf.distribute strategy. '
        f'Received: {tf.distribute.get_strategy()!r}. Leave out one of the '
        'two, or use `tfplugin.distribute.ElasticAverageStrategy` alone.')

  def wrap(optimizer: tf1.train.Optimizer) -> _PenalizingOptimizer:
    # Once in a graph is enough for the workers to meet.
    return _PenalizingOptimizer(
        optimizer, worker.num_worker, getter,
        synchronous=synchronous and not interception.wrappers, **settings)

  interception = optimizer_interception.Interception(wrap, _Optimizer)
  with interception.active(), getter.scope():
    spec = call()
  name = decorator_stack.ELASTIC
  training_spec.check_spec(spec, name)
  training_spec.check_applied(
      interception, name,
      'tfplugin.ElasticAverageOptimizer(opt, num_worker, getter)')
  if interception.honoured:
    elastic_spec.check_honoured(interception, getter)
    return spec
  return elastic_spec.complete(spec, call.config, worker, getter,
                               interception.wrappers)


class _PenalizingOptimizer(_Optimizer):
  """Adds the penalty when gradients are applied.

  They were computed by the optimizer inside, which knows nothing of it.
  """

  def apply_gradients(self, grads_and_vars, *args, **kwargs):
    """See the base class."""
    grads_and_vars = list(grads_and_vars)
    pairs = self._getter.pairs_of([v for _, v in grads_and_vars])
    return super().apply_gradients(
        [(gradient if gradient is None else
          self._penalty.add_to(gradient, pair), variable)
         for (gradient, variable), pair in zip(grads_and_vars, pairs)],
        *args, **kwargs)
