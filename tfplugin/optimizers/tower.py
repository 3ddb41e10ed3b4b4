# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wrapper for the optimizer of a model_fn that runs in several towers."""

from __future__ import annotations

import weakref
from typing import Callable

import tensorflow as tf

from tfplugin import types
from tfplugin.optimizers import wrapper

tf1 = tf.compat.v1

# The graphs in which a TowerOptimizer was used. Not a graph collection, because
# every exported meta graph contains the collections.
_graphs = weakref.WeakSet()


class TowerOptimizer(wrapper.OptimizerWrapper):
  """Wrapper that applies the gradient of the whole batch once.

  For a model_fn that `tfplugin.replicate_model_fn` splits over several towers.
  `compute_gradients` returns the gradient of the loss of all rows of the batch,
  as on one device. `apply_gradients` updates each variable once. A loss that is
  a mean over rows stays the mean over the batch, and a sum stays the sum, for
  every `loss_reduction`: no tower has a weight of its own.

  A plain `tf.compat.v1.train` optimizer does the same there; this class is for
  programs that use it already. With one tower, and outside of
  `replicate_model_fn`, it behaves as the optimizer that it wraps.

  Variables created: none of its own. The wrapped optimizer's variables have
  the names of one device.

  Supported: every v1 optimizer; dense and sparse gradients (rows of the towers
  are concatenated, never densified); partitioned variables; several instances;
  gradients that are clipped or otherwise changed between the two calls.

  Differences from tf.contrib:
    * `compute_gradients` returns gradients of the batch. A change before
      `apply_gradients` (clipping by the global norm, say) changes the gradient
      of the batch, not of a tower.
    * Nothing is stored in the graph's collections.
    * Use without `replicate_model_fn` is no error.

  Example:
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> tf1 = tf.compat.v1
    >>> with tf.Graph().as_default(), tf1.Session() as session:
    ...   w = tf1.get_variable('w', initializer=[1.0, 2.0])
    ...   opt = tfplugin.TowerOptimizer(tf1.train.GradientDescentOptimizer(0.5))
    ...   train_op = opt.minimize(tf.reduce_sum(w * w))
    ...   session.run(tf1.global_variables_initializer())
    ...   session.run(train_op)
    ...   print(session.run(w))
    [0. 0.]

  References:
    The class of the same name in `tf.contrib.estimator` of TensorFlow 1.15.
  """

  # Kept for programs that name it. Nothing is stored under it.
  COLLECTION_FOR_GRAPH_STATES = 'replicate_model_fn_graph_states'

  def __init__(
      self, optimizer_or_optimizer_fn: (
          types.Optimizer | Callable[[], types.Optimizer])):
    """Wraps an optimizer.

    Args:
      optimizer_or_optimizer_fn: A v1 optimizer, or a function without arguments
        that returns one.

    Raises:
      TypeError: It is neither.
    """
    optimizer = optimizer_or_optimizer_fn
    if callable(optimizer) and not isinstance(optimizer, type):
      optimizer = optimizer()
    wrapper.check_optimizer(optimizer, 'optimizer_or_optimizer_fn')
    super().__init__(optimizer, use_locking=False, name=optimizer.get_name())

  @staticmethod
  def has_been_used() -> bool:
    """Returns whether a TowerOptimizer was used in the default graph."""
    return tf1.get_default_graph() in _graphs

  def compute_gradients(self, loss: types.LossLike, *args, **kwargs,
                        ) -> types.GradsAndVars:
    """Computes the gradients of the whole batch; see the base class.

    Args:
      loss: The scalar loss.
      *args: As in `tf.compat.v1.train.Optimizer.compute_gradients`.
      **kwargs: Likewise.

    Raises:
      RuntimeError: Eager execution, or a function as loss.
    """
    if tf.executing_eagerly() or callable(loss):
      raise RuntimeError(
          '`TowerOptimizer` works on a loss tensor of a graph. Received: '
          f'loss={loss!r}. Outside a graph use the bare optimizer under '
          '`tfplugin.distribute.TowerStrategy`.')
    _graphs.add(tf1.get_default_graph())
    return super().compute_gradients(loss, *args, **kwargs)

  def apply_gradients(self, grads_and_vars: types.GradsAndVars,
                      global_step: tf.Variable | None = None,
                      name: str | None = None,
                      skip_gradients_aggregation: bool = False):
    """Applies the gradients once for all towers; see the base class."""
    if not tf.executing_eagerly():
      _graphs.add(tf1.get_default_graph())
    return self._apply_wrapped(
        grads_and_vars, global_step, name, skip_gradients_aggregation)
