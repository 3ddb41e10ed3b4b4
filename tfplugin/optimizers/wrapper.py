# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Base class of tfplugin's optimizers, which delegates to another optimizer."""

from __future__ import annotations

import inspect

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import per_graph
from tfplugin.distribute import placement
from tfplugin.distribute.packed import packing
from tfplugin.distribute.updates import optimizer_interception

tf1 = tf.compat.v1

# The arguments that every optimizer has; some add others (`decay_var_list`).
_MINIMIZE = frozenset(
    inspect.signature(tf1.train.Optimizer.minimize).parameters)

# The `global_step` of the `minimize` that is being called, by the user or by an
# outer wrapper: `compute_gradients` does not get it.
minimized_step = per_graph.ContextValue(None)


def check_optimizer(opt: tf1.train.Optimizer, argument: str = 'opt') -> None:
  """Raises TypeError unless `opt` is an instance of a v1 optimizer."""
  if isinstance(opt, tf1.train.Optimizer):
    return
  remedy = 'Pass e.g. `tf.compat.v1.train.AdamOptimizer(1e-3)`.'
  if isinstance(opt, type) and issubclass(opt, tf1.train.Optimizer):
    remedy = f'Pass an instance, not the class: `{opt.__name__}(...)`.'
  # An attribute of the class: reading it from an instance makes an old Keras
  # optimizer create its `iterations`.
  elif hasattr(opt if isinstance(opt, type) else type(opt), 'iterations'):
    remedy = 'Keras optimizers are not supported. ' + remedy
  raise TypeError(f'`{argument}` must be an instance of '
                  f'`tf.compat.v1.train.Optimizer`. Received: {opt!r}. '
                  f'{remedy}')


class OptimizerWrapper(tf1.train.Optimizer):
  """Optimizer that delegates every call to the optimizer that it wraps.

  It also passes on arguments that the wrapped one adds to `minimize` or
  `apply_gradients`. With nothing overridden it behaves, bit for bit, as the
  wrapped optimizer: same weights, same variable and slot names. A subclass
  overrides `compute_gradients` and/or `apply_gradients` and holds only its
  algorithm. One that creates variables also overrides `variables()` as inner +
  own.
  """

  def __init_subclass__(cls, **kwargs):
    """Makes a decorator intercept a wrapper before the optimizer inside it."""
    super().__init_subclass__(**kwargs)
    if 'apply_gradients' in cls.__dict__:
      cls.apply_gradients = optimizer_interception.interceptable(
          cls.apply_gradients)

  def __init__(self, opt: tf1.train.Optimizer, use_locking: bool, name: str):
    """Wraps `opt`, a v1 optimizer; others raise a TypeError.

    `use_locking` is for the updates of the wrapper. `name` names its ops, never
    a variable of `opt`.
    """
    check_optimizer(opt)
    # Not by super(): a subclass may have another optimizer class beside this
    # one.
    tf1.train.Optimizer.__init__(self, use_locking, name)
    self._optimizer = opt
    # An object-based checkpoint of a wrapper must include the wrapped
    # optimizer. With slots TensorFlow refuses it with an error, as `get_slot`
    # finds them through both. A checkpoint of `opt` alone is complete.
    self._track_trackable(opt, 'base_optimizer')

  def minimize(self, loss: types.LossLike,
               global_step: tf.Variable | None = None, *args, **kwargs):
    """Computes and applies gradients; see the base class.

    Other arguments go to the `apply_gradients` of the wrapped optimizer.
    """
    more = {key: kwargs.pop(key) for key in list(kwargs)
            if key not in _MINIMIZE}
    with minimized_step.set_to(global_step):
      with optimizer_interception.arguments_added(self, more):
        return super().minimize(loss, global_step, *args, **kwargs)

  def compute_gradients(
      self,
      loss: types.LossLike,
      var_list=None,
      gate_gradients: int = tf1.train.Optimizer.GATE_OP,
      aggregation_method: int | None = None,
      colocate_gradients_with_ops: bool = False,
      grad_loss: tf.Tensor | None = None,
  ) -> types.GradsAndVars:
    """Computes gradients with the wrapped optimizer; see the base class."""
    return self._optimizer.compute_gradients(
        loss,
        var_list=var_list,
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
        grad_loss=grad_loss)

  @optimizer_interception.interceptable
  def apply_gradients(self,
                      grads_and_vars: types.GradsAndVars,
                      global_step: tf.Variable | None = None,
                      name: str | None = None,
                      skip_gradients_aggregation: bool = False):
    """Applies gradients with the wrapped optimizer; see the base class."""
    return self._apply_wrapped(
        grads_and_vars, global_step, name, skip_gradients_aggregation)

  def _apply_wrapped(self, grads_and_vars: types.GradsAndVars,
                     global_step: tf.Variable | None = None,
                     name: str | None = None,
                     skip_gradients_aggregation: bool = False):
    """Applies gradients as a subclass does it in its `apply_gradients`."""
    # Only when it is set: an optimizer written before TensorFlow 2.10 overrides
    # `apply_gradients` without this argument.
    extra = ({'skip_gradients_aggregation': True}
             if skip_gradients_aggregation else {})
    grads_and_vars = list(grads_and_vars)
    if placement.are_in_tasks([v for _, v in grads_and_vars]):
      grads_and_vars = packing.sent_by_hand(grads_and_vars)
    return self._optimizer.apply_gradients(
        grads_and_vars, global_step=global_step, name=name, **extra)

  def get_slot(self, var: tf.Variable, name: str) -> tf.Variable | None:
    """Returns the wrapped optimizer's slot `name` of `var`, or None."""
    return self._optimizer.get_slot(var, name)

  def get_slot_names(self) -> list[str]:
    """Returns the names of the wrapped optimizer's slots."""
    return self._optimizer.get_slot_names()

  def variables(self) -> list[tf.Variable]:
    """Returns the wrapped optimizer's variables."""
    return self._optimizer.variables()

  def _create_slots(self, var_list: list[tf.Variable]) -> None:
    # An outer wrapper may need the state before this one applies gradients.
    with tf.init_scope():
      _tf_internals.state_creator(self._optimizer)(var_list)
