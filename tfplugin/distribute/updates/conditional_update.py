# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients applied under a boolean tensor, or if finite, in every context.

  plain graph, tf.function:  one `tf.cond` around `apply_gradients`
  eager:                     a Python if
  tf.distribute replica:     one `merge_call`: one decision for all replicas and
                             variables, one `tf.cond`, and every replica applies
                             inside it

The optimizer's slots and other variables are made before the branch. An inner
optimizer may make its variables inside the branch. These have the same names
and initial values as with an unconditional `apply_gradients`.

Updates that must be finite are applied likewise; see `ops/nonfinite.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any
from typing import Callable

import numpy as np
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import branching
from tfplugin.distribute import cluster_task
from tfplugin.distribute import placement
from tfplugin.distribute.packed import packing
from tfplugin.ops import nonfinite

tf1 = tf.compat.v1

# Makes ops inside a branch, and returns them.
BranchFn = Callable[[], Sequence]


def apply_gradients_if(
    should_apply: tf.Tensor,
    optimizer: tf1.train.Optimizer,
    grads_and_vars: types.GradsAndVars,
    global_step: tf.Variable | None = None,
    name: str | None = None,
    *,
    prepare: Callable[[], None] = lambda: None,
    on_apply: BranchFn = tuple,
    on_skip: Callable[..., Sequence] = tuple,
    skip_args: Sequence[tf.Tensor] = (),
    **apply_kwargs,
):
  """Runs `optimizer.apply_gradients` where `should_apply` is true.

  Where it is false, the variables, the optimizer's state and `global_step` do
  not change. With several replicas, `should_apply` is true if it is true in
  each replica. So is each of `skip_args`, bool scalars that `on_skip` gets.

  `prepare` is called once before the branch, to make the variables that
  `on_apply` and `on_skip` use. `on_apply` is called in the branch that applies,
  after the update, and `on_skip` in the other one. The ops that they return run
  with their branch. Under a strategy all three are called in cross-replica
  context. `apply_kwargs` are for `optimizer.apply_gradients`.

  Returns an op named `name` in a graph, None in eager execution. Raises
  ValueError if `grads_and_vars` is empty or has no gradient.

  Example:
    >>> v = tf.Variable(1.0)
    >>> sgd = tf.compat.v1.train.GradientDescentOptimizer(0.5)
    >>> apply_gradients_if(tf.constant(False), sgd, [(tf.constant(1.), v)])
    >>> float(v)
    1.0
    >>> apply_gradients_if(tf.constant(True), sgd, [(tf.constant(1.), v)])
    >>> float(v)
    0.5
  """
  grads_and_vars = _check_gradients(grads_and_vars)
  name = name or optimizer.get_name()
  if tf.distribute.has_strategy() and tf.distribute.in_cross_replica_context():
    raise RuntimeError('`apply_gradients` was called in a cross-replica '
                       'context. Call it in the replica function that '
                       '`strategy.run` runs.')
  if tf.distribute.has_strategy() and not apply_kwargs.get(
      'skip_gradients_aggregation'):
    # By closure: `merge_call` would regroup the callables per replica.
    merged = functools.partial(
        _merged, optimizer=optimizer, global_step=global_step, name=name,
        prepare=prepare, on_apply=on_apply, on_skip=on_skip,
        apply_kwargs=apply_kwargs)
    return tf.distribute.get_replica_context().merge_call(
        merged, args=(should_apply, grads_and_vars, tuple(skip_args)))
  with tf.init_scope():
    _tf_internals.state_creator(optimizer)(
        [v for g, v in grads_and_vars if g is not None])
  prepare()
  arrived = grads_and_vars
  if placement.are_in_tasks([v for _, v in arrived]):
    arrived = packing.sent_by_hand(arrived)

  def apply_update():
    return optimizer.apply_gradients(
        arrived, global_step=global_step, **apply_kwargs)

  return _branch(should_apply, apply_update, on_apply,
                 functools.partial(on_skip, *skip_args), name,
                 _updated(optimizer, grads_and_vars, global_step))


def _check_gradients(grads_and_vars: types.GradsAndVars) -> list:
  """Returns the pairs as a list; raises like TensorFlow's optimizers."""
  grads_and_vars = list(grads_and_vars)
  if not grads_and_vars:
    raise ValueError('`grads_and_vars` must not be empty. No variables '
                     'provided.')
  if all(gradient is None for gradient, _ in grads_and_vars):
    raise ValueError('`grads_and_vars` must hold a gradient. No gradients '
                     'provided for any variable. Received: '
                     f'{[variable.name for _, variable in grads_and_vars]}')
  return grads_and_vars


def _merged(strategy, should_apply, grads_and_vars, skip_args, *, optimizer,
            global_step, name, prepare, on_apply, on_skip, apply_kwargs):
  """Decides once for all replicas, in cross-replica context."""
  should_apply, *skip_args = (
      tf.reduce_all(tf.stack([
          tf.identity(d) for d in strategy.experimental_local_results(each)]))
      for each in (should_apply, *skip_args))
  variables = [v for g, v in grads_and_vars if g is not None]
  with tf.init_scope():
    _tf_internals.state_creator(optimizer)(variables)
  prepare()
  gradients = tuple(g for g, _ in grads_and_vars)

  def apply_in_replica(gradients):
    # The variables come by closure: an argument would arrive unwrapped, as one
    # replica's copy, and the optimizer needs the distributed variable.
    pairs = list(zip(gradients, [v for _, v in grads_and_vars]))
    return optimizer.apply_gradients(
        pairs, global_step=global_step, **apply_kwargs)

  def apply_update():
    results = strategy.extended.call_for_each_replica(
        apply_in_replica, args=(gradients,))
    return strategy.experimental_local_results(results)

  return _branch(should_apply, apply_update, on_apply,
                 functools.partial(on_skip, *skip_args), name,
                 _updated(optimizer, grads_and_vars, global_step))


def _updated(optimizer, grads_and_vars, global_step) -> list[tf.Variable]:
  """Returns the variables that a step of `optimizer` may change."""
  return [*(v for _, v in grads_and_vars), *optimizer.variables(),
          *([] if global_step is None else [global_step])]


def _branch(should_apply, apply, on_apply, on_skip, name, updated):
  """Runs `apply` then `on_apply`, or `on_skip`; see `apply_gradients_if`."""
  if tf.executing_eagerly():
    if bool(should_apply):
      apply()
      on_apply()
    else:
      on_skip()
    return None

  outside = tf1.get_default_graph().get_name_scope()
  summaries = []

  def true_branch():
    with _tf_internals.private_train_ops(), _variables_made_as_in(
        outside), _tf_internals.summaries_moved(summaries):
      update = _ops_of(apply())
      with tf.control_dependencies(update):
        done = branching.done(update + _ops_of(on_apply()))
    return [done, *summaries]

  def false_branch():  # An empty string is a summary of nothing.
    return [branching.done(_ops_of(on_skip())), *(tf.constant('')
                                                  for _ in summaries)]

  with branching.updating(updated):
    done, *results = tf.cond(should_apply, true_branch, false_branch)
  for summary in results:
    tf1.add_to_collection(tf1.GraphKeys.SUMMARIES, summary)
  update = tf.group(done, name=name)
  if not tf.inside_function():
    tf1.add_to_collection(tf1.GraphKeys.TRAIN_OP, update)
  return update


def _variables_made_as_in(outside: str):
  """Creates variables in a branch with the values and names of one outside.

  An optimizer inside a user's own optimizer class makes its variables in the
  branch. `outside` is the name scope around the branch, and stands in names in
  the place of the branch's. Control flow v2 does not put the branch into names.
  """
  graph = tf1.get_default_graph()
  inside = graph.get_name_scope()

  def create(next_creator, **kwargs):
    kwargs = _with_outside_value(**kwargs)
    scope = tf1.get_default_graph().get_name_scope()
    if not inside or f'{scope}/'.find(f'{inside}/') != 0:
      return next_creator(**kwargs)
    scope = (outside + scope[len(inside):]).strip('/')
    with tf1.name_scope(f'{scope}/' if scope else None):
      return next_creator(**kwargs)

  return tf1.variable_creator_scope(create)


def _with_outside_value(initial_value=None, **kwargs) -> dict[str, Any]:
  """Returns arguments for a variable without a tensor of the branch."""
  kwargs['initial_value'] = initial_value
  if not (tf.is_tensor(initial_value) and hasattr(initial_value, 'graph')):
    return kwargs
  with tf.init_scope():
    if tf.executing_eagerly() or _tf_internals.is_usable_here(initial_value):
      return kwargs
  value = tf.get_static_value(initial_value)
  if value is None:
    raise ValueError(
        'The `initial_value` of a variable that `apply_gradients` makes must '
        'not be computed under the condition of the update. Received: '
        f'{initial_value} for {kwargs.get("name")!r}. Compute it inside of '
        '`with tf.init_scope():`, or pass a function.')
  value, dtype = np.asarray(value), initial_value.dtype
  if value.size and np.all(value == value.flat[0]):  # Not stored as a whole.
    kwargs['initial_value'] = lambda: tf.fill(
        value.shape, tf.constant(value.flat[0], dtype))
  else:
    kwargs['initial_value'] = lambda: tf.constant(value, dtype)
  return kwargs


def _ops_of(results) -> list:
  """Returns the results of a branch as a flat list of ops."""
  return [getattr(result, 'op', result)
          for result in tf.nest.flatten(results) if result is not None]


def accepted(on_nonfinite: str, values: Sequence[nonfinite.Value],
             names: Sequence[str], step: tf.Tensor) -> tf.Tensor:
  """Returns whether an update of `values` is made: a bool scalar.

  `on_nonfinite` is `'drop'` or `'raise'`, not `'apply'`. There is at least one
  value, a gradient or a difference. `names`, of the variables, and `step` are
  for the error. Under `'raise'` the op fails with an InvalidArgumentError.

  Example:
    >>> values = [tf.constant([float('inf')]), tf.constant([1.0])]
    >>> bool(accepted('drop', values, ['v', 'w'], tf.constant(7)))
    False
  """
  finite = nonfinite.are_finite(values)
  result = tf.reduce_all(finite)
  if on_nonfinite == nonfinite.DROP:
    return result
  check = tf.debugging.Assert(
      result,
      [f'{cluster_task.from_environment().name}, at step', step,
       ': a NaN or an infinity in the update of',
       tf.boolean_mask(tf.constant(list(names)), tf.logical_not(finite)),
       'Lower the learning rate, clip the gradients, or pass '
       "on_nonfinite='drop'."], summarize=20)
  with tf.control_dependencies([] if check is None else [check]):
    return tf.identity(result)


class FiniteUpdates:
  """The finite updates of one worker, with a counter of its other updates.

  `num_nonfinite` counts the drops of this worker. It is None before the first
  update, and where nothing is dropped.
  """

  def __init__(self, on_nonfinite: str, name: str, device: str = ''):
    """Prepares checked updates on a device, with a counter of that name."""
    self.on_nonfinite = on_nonfinite
    self.num_nonfinite: placement.WorkerCounter | None = None
    self._name = name
    self._device = device

  def apply(self, optimizer: tf1.train.Optimizer,
            grads_and_vars: types.GradsAndVars,
            global_step: tf.Variable | None, name: str | None,
            step: tf.Tensor, **kwargs: Any):
    """Runs `optimizer.apply_gradients` where the gradients are finite."""
    grads_and_vars = list(grads_and_vars)
    known = [(g, v) for g, v in grads_and_vars if g is not None]
    if not known:
      return optimizer.apply_gradients(
          grads_and_vars, global_step, name, **kwargs)
    return apply_gradients_if(
        self.accepted([g for g, _ in known], [v.name for _, v in known], step),
        optimizer, grads_and_vars, global_step, name,
        on_skip=self.count, **kwargs)

  def accepted(self, values: Sequence[nonfinite.Value], names: Sequence[str],
               step: tf.Tensor) -> tf.Tensor:
    """Returns the module's `accepted`; makes the counter, outside branches."""
    if self.num_nonfinite is None and self.on_nonfinite == nonfinite.DROP:
      self.num_nonfinite = placement.WorkerCounter(
          self._name, self._device)
    return accepted(self.on_nonfinite, values, names, step)

  def summarize(self, tag: str) -> None:
    """Adds a summary of the dropped updates, if any, in a plain graph."""
    if not (self.num_nonfinite is None or tf.executing_eagerly() or
            tf.inside_function()):
      with tf1.control_dependencies(None):
        tf1.summary.scalar(tag, self.num_nonfinite.value())

  def count(self) -> list:
    """Returns the op that counts a drop, if drops are counted."""
    return [self.num_nonfinite.increment()] if self.num_nonfinite else []
