# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients applied under a boolean tensor, in every context.

  plain graph, tf.function:  one `tf.cond` around `apply_gradients`
  eager:                     a Python if
  tf.distribute replica:     one `merge_call`: one decision for all replicas and
                             variables, one `tf.cond`, and every replica applies
                             inside it

The optimizer's slots and other variables are made before the branch. An inner
optimizer may make its variables inside the branch. These have the same names as
with an unconditional `apply_gradients`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import branching
from tfplugin.distribute.packed import packing

tf1 = tf.compat.v1

# Makes ops inside a branch, and returns them.
BranchFn = Callable[[], Sequence]


def apply_gradients_if(
    should_apply: tf.Tensor,
    optimizer: tf1.train.Optimizer,
    grads_and_vars: types.GradsAndVars,
    global_step: Optional[tf.Variable] = None,
    name: Optional[str] = None,
    *,
    prepare: Callable[[], None] = lambda: None,
    on_apply: BranchFn = tuple,
    on_skip: BranchFn = tuple,
    **apply_kwargs,
):
  """Runs `optimizer.apply_gradients` where `should_apply` is true.

  Where it is false, the variables, the optimizer's state and `global_step` do
  not change. In replicas, all of their `should_apply` must be true.

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
        merged, args=(should_apply, grads_and_vars))
  _tf_internals.create_optimizer_state(
      optimizer, [v for g, v in grads_and_vars if g is not None])
  prepare()
  arrived = packing.sent_by_hand(grads_and_vars)

  def apply():
    return optimizer.apply_gradients(
        arrived, global_step=global_step, **apply_kwargs)

  return _branch(should_apply, apply, on_apply, on_skip, name,
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


def _merged(strategy, should_apply, grads_and_vars, *, optimizer, global_step,
            name, prepare, on_apply, on_skip, apply_kwargs):
  """Decides once for all replicas, in cross-replica context."""
  decisions = strategy.experimental_local_results(should_apply)
  should_apply = tf.reduce_all(tf.stack([tf.identity(d) for d in decisions]))
  variables = [v for g, v in grads_and_vars if g is not None]
  _tf_internals.create_optimizer_state(optimizer, variables)
  prepare()
  gradients = tuple(g for g, _ in grads_and_vars)

  def apply_in_replica(gradients):
    # The variables come by closure: an argument would arrive unwrapped, as one
    # replica's copy, and the optimizer needs the distributed variable.
    pairs = list(zip(gradients, [v for _, v in grads_and_vars]))
    return optimizer.apply_gradients(
        pairs, global_step=global_step, **apply_kwargs)

  def apply():
    results = strategy.extended.call_for_each_replica(
        apply_in_replica, args=(gradients,))
    return strategy.experimental_local_results(results)

  return _branch(should_apply, apply, on_apply, on_skip, name,
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

  def true_branch():
    with _tf_internals.private_train_ops(), _variables_named_as_in(outside):
      update = _ops_of(apply())
      with tf.control_dependencies(update):
        return branching.done(update + _ops_of(on_apply()))

  done = branching.cond(should_apply, true_branch,
                        lambda: branching.done(_ops_of(on_skip())), updated)
  update = tf.group(done, name=name)
  if not tf.inside_function():
    tf1.add_to_collection(tf1.GraphKeys.TRAIN_OP, update)
  return update


def _variables_named_as_in(outside: str):
  """Creates variables without the name scope of a v1 branch in their names.

  An optimizer inside a user's own optimizer class makes its variables in the
  branch. `outside` is the name scope around the branch. Control flow v2 does
  not put the branch into names.
  """
  graph = tf1.get_default_graph()
  inside = graph.get_name_scope()

  def create(next_creator, **kwargs):
    scope = tf1.get_default_graph().get_name_scope()
    if not inside or f'{scope}/'.find(f'{inside}/') != 0:
      return next_creator(**kwargs)
    scope = (outside + scope[len(inside):]).strip('/')
    with tf1.name_scope(f'{scope}/' if scope else None):
      return next_creator(**kwargs)

  return tf1.variable_creator_scope(create)


def _ops_of(results) -> list:
  """Returns the results of a branch as a flat list of ops."""
  return [getattr(result, 'op', result)
          for result in tf.nest.flatten(results) if result is not None]
