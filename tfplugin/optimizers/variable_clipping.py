# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wrapper that bounds the norm of variables' slices, such as embedding rows."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import refusals
from tfplugin.distribute.clipping import clip
from tfplugin.distribute.clipping import clip_rules
from tfplugin.distribute.updates import optimizer_interception
from tfplugin.distribute.updates import update_lock
from tfplugin.ops import norm_clipping
from tfplugin.optimizers import wrapper

tf1 = tf.compat.v1


class VariableClippingOptimizer(wrapper.OptimizerWrapper):
  """Wrapper that clips the L2 norm of variables' slices after each update.

  It projects the weights into a ball, and clips no gradients. Choose it for
  embeddings whose rows must not grow, or for max-norm regularised layers.

    update of the wrapped optimizer, then for every slice along the given dims:
    slice *= max_norm / norm(slice)    if norm(slice) > max_norm

  Slices within the bound are not touched, bit for bit; afterwards no norm
  exceeds `max_norm * (1 + 8 eps)`, eps being the rounding unit of the dtype.

  With a sparse gradient, and dims without 0, only the rows of the batch are
  clipped. The cost does not depend on the table's size. An optimizer like Adam
  or Momentum also moves rows outside the batch (SGD, Adagrad, Ftrl do not).
  Such rows may leave the ball until they next occur in a batch. `rows='all'`
  checks all rows after every step, and leaves none outside. It reads the whole
  table in every step.

  On parameter servers the clip runs on the variable's server, after the update.
  For the rows that it writes, an update of another worker between read and
  write is lost. A later update may leave a row outside until its own clip,
  which follows at once. With `use_locking=True` update and clip are one atomic
  action among the workers that lock.

  Variables created: none.

  Supported: dense and sparse gradients with repeated ids; partitioned
  variables, where a slice over several parts is measured as a whole; float16,
  bfloat16, float32 and float64; graphs, eager execution and tf.function;
  replicas of tf.distribute, except slices split over several parts.

  Differences from tf.contrib:
    * An id that occurs several times in a batch is clipped once. With max_norm
      2 contrib left a row [6, 8] with the norm 2, 6 (sign flipped) and 14 for
      one, two and three occurrences; this class leaves 2 for each.
    * A row whose square overflows is clipped; contrib made it 0.
    * A PartitionedVariable as key is clipped; contrib ignored it.
    * dims may be an int and negative; bad dims and unknown variables raise.
    * A clipped row is written, not subtracted from, and a row within the bound
      is not written: contrib's difference has the rounding error of the value
      before, and could exceed the bound by as much.
    * Clip ops always sit beside their variable: `colocate_clip_ops_with_vars`
      is accepted and changes nothing.
    * `variables()` returns the wrapped optimizer's.

  Example:
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> with tf.Graph().as_default():
    ...   table = tf.compat.v1.get_variable(
    ...       'table', initializer=[[6.0, 8.0], [0.3, 0.4]])
    ...   loss = tf.reduce_sum(tf.gather(table, [0, 0]))
    ...   optimizer = tfplugin.VariableClippingOptimizer(
    ...       tf.compat.v1.train.GradientDescentOptimizer(0.0),
    ...       {'table': 1}, max_norm=2.0)
    ...   train_op = optimizer.minimize(loss)
    ...   with tf.compat.v1.Session() as session:
    ...     session.run(tf.compat.v1.global_variables_initializer())
    ...     session.run(train_op)
    ...     session.run(table).astype(float).round(3).tolist()
    [[1.2, 1.6], [0.3, 0.4]]

  References:
    Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov. Dropout: a
    simple way to prevent neural networks from overfitting. JMLR 15, 2014
    (section 5.1, max-norm regularisation).
    https://jmlr.org/papers/v15/srivastava14a.html
  """

  # Whether a rule that this optimizer does not use is a mistake.
  _warns = True

  def __init__(self,
               opt: types.Optimizer,
               vars_to_clip_dims: clip_rules.Rules,
               max_norm: norm_clipping.Bound,
               use_locking: bool = False,
               colocate_clip_ops_with_vars: bool = False,
               name: str = 'VariableClipping',
               *,
               rows: str = 'touched'):
    """Wraps `opt`.

    Args:
      opt: The v1 optimizer that computes and applies the updates.
      vars_to_clip_dims: The variables to clip, and the dims that one slice
        extends over: `{embedding: [1]}` clips every row, and `[]` each value by
        itself. A dict, or a sequence of (key, dims) pairs, as a variable is no
        dict key under v2 behaviour. A key is a variable, a PartitionedVariable,
        `variable.ref()`, a regular expression that is searched in the
        variables' names, or a predicate of a name.
      max_norm: The largest L2 norm of a slice: a number, or a scalar tensor.
      use_locking: Whether workers exclude each other from update and clip, with
        a mutex beside the first variable, in a plain graph.
      colocate_clip_ops_with_vars: Changes nothing; see the class.
      name: Names ops.
      rows: `'touched'` or `'all'`: the rows to check after a sparse gradient.

    Raises:
      TypeError: An argument, a key or dims of a wrong type.
      ValueError: `max_norm` not positive or not finite, dims repeated or out of
        range, or `rows` unknown.
      RuntimeError: A lock around a SyncReplicasOptimizer.
    """
    super().__init__(opt, use_locking, name)
    if use_locking and optimizer_interception.holds(
        opt, tf1.train.SyncReplicasOptimizer):
      refusals.refuse_synchronous(
          'inside of a clip with `use_locking=True`', 'the step would hold the '
          'lock while it waits for an update that needs the lock',
          f'{opt.get_name()!r}', 'Pass use_locking=False, or put '
          'SyncReplicasOptimizer around VariableClippingOptimizer')
    del colocate_clip_ops_with_vars
    self._rules = clip_rules.parse(vars_to_clip_dims, 'vars_to_clip_dims')
    self._max_norm = norm_clipping.check_max_norm(max_norm)
    clip_rules.check_rows(rows)
    self._rows = rows
    self._fraction_clipped = None
    self.used_rules = set()  # With a variable that a call has clipped.
    self._warned_of = set()

  @property
  def fraction_clipped(self) -> tf.Tensor | None:
    """The fraction of the checked slices that the last built update clips.

    A `float32` scalar in [0, 1]. It is part of the update: fetch it together
    with the train op. None before an update, and in a replica of a strategy.
    Inside of DropStaleGradientOptimizer it belongs to a branch and cannot be
    fetched; around that optimizer it can.
    """
    return self._fraction_clipped

  def apply_gradients(self,
                      grads_and_vars: types.GradsAndVars,
                      global_step: tf.Variable | None = None,
                      name: str | None = None,
                      skip_gradients_aggregation: bool = False):
    """Applies the gradients with the wrapped optimizer, then clips.

    Args:
      grads_and_vars: Variables without a gradient are not clipped, except for
        parts of a variable of which another part has one. A warning names each
        rule without a variable that has been clipped.
      global_step: See the base class.
      name: Of the returned op.
      skip_gradients_aggregation: See the base class.

    Returns:
      An op that updates and clips; None in eager execution.

    Raises:
      ValueError: There is no gradient, or a rule selects no variable.
    """
    grads_and_vars = list(grads_and_vars)
    dims = clip_rules.resolve(
        self._rules, _candidates([v for _, v in grads_and_vars]))
    apply_inner = self._apply_wrapped

    def update_and_clip(grads_and_vars):
      update = apply_inner(
          grads_and_vars, global_step=global_step,
          skip_gradients_aggregation=skip_gradients_aggregation)
      clips = self._clip(update, grads_and_vars, dims)
      if tf.executing_eagerly():
        return None
      return tf.group(update, *clips, name=name or self.get_name())

    applied = [v for g, v in grads_and_vars if g is not None]
    if not (self._use_locking and applied and update_lock.is_possible()):
      return update_and_clip(grads_and_vars)
    return update_lock.run_locked(
        applied[0], grads_and_vars, update_and_clip,
        f'{self.get_name()}/mutex')

  def _clip(self, update, grads_and_vars, dims) -> list:
    """Clips the updated variables, after `update`; returns ops."""
    gradients = {}
    for gradient, variable in grads_and_vars:
      if gradient is not None:
        own = _tf_internals.own_variable(variable)
        gradients.setdefault(own.ref(), []).append(gradient)
    variables = [v for _, v in grads_and_vars]
    if not tf.distribute.has_strategy():
      # A slice may extend over parts that this optimizer does not update.
      variables = _candidates(variables)
    groups, applied = [], []
    for group in clip_rules.group_parts(variables, dims):
      # Row ids are used where a slice is in one variable.
      of_group = [gradients[v.ref()] for v in group if v.ref() in gradients]
      if of_group:
        groups.append((group, dims[group[0].ref()]))
        applied.append(of_group[0])
    self._note_rules([v for group, _ in groups for v in group],
                     _candidates(variables))
    if tf.distribute.has_strategy() and not (
        tf.distribute.in_cross_replica_context()):

      def merged(strategy, update, applied):
        return self._clip_copies(strategy, update, groups, applied)

      self._fraction_clipped = None
      return tf.distribute.get_replica_context().merge_call(
          merged, args=(update, tuple(map(tuple, applied))))
    with tf.control_dependencies([] if update is None else [update]):
      results = [self._clip_group(group, axes, clip.touched_ids(of_group))
                 for (group, axes), of_group in zip(groups, applied)]
    self._fraction_clipped = _fraction(results)
    return [result.operation for result in results]

  def _note_rules(self, clipped: list, candidates: list) -> None:
    """Notes the rules of the `clipped` variables, and warns about others."""
    unused = set(self._rules) - self.used_rules
    if not unused:
      return
    used = clip_rules.used_by(self._rules, clipped)
    self.used_rules |= used
    if self._warns:
      clip_rules.warn_of_unused(
          [rule for rule in self._rules
           if rule in unused - used - self._warned_of], candidates,
          'this optimizer',
          'Wrap the optimizer that updates them, or leave out the rule. Ignore '
          'this if a later call of this optimizer updates them.')
      self._warned_of |= unused

  def _clip_group(self, variables: Sequence[tf.Variable], axes: Sequence[int],
                  ids: tf.Tensor | None) -> clip.ClipResult:
    """Clips a variable, or the parts of one, of which `ids` were updated."""
    return clip.clip(variables, axes, self._max_norm,
                     ids if self._rows == 'touched' else None)

  def _clip_copies(self, strategy, update, groups, applied) -> list:
    """Clips every copy of each variable, in cross-replica context."""
    results = []
    with tf.control_dependencies([
        op for op in strategy.experimental_local_results(update)
        if op is not None]):
      for (group, axes), gradients in zip(groups, applied):
        ids = _ids_of_replicas(strategy, gradients)

        def clip_copy(*variables, axes=axes, ids=ids):
          return self._clip_group(variables, axes, ids).operation

        results.extend(strategy.extended.update(
            group[0], clip_copy, args=tuple(group[1:]), group=False))
    return results


class SharesRules(VariableClippingOptimizer):
  """Wrapper that shares its rules with other optimizers of a model_fn."""

  _warns = False


def _candidates(variables: list) -> list[tf.Variable]:
  """Returns the variables that a rule may name in this context."""
  return [*variables, *tf1.trainable_variables()]


def _fraction(results: list) -> tf.Tensor | None:
  """Returns the fraction of clipped slices; None under a strategy."""
  if not results or tf.distribute.has_strategy():
    return None
  num_clipped = tf.add_n([r.num_clipped for r in results])
  num_slices = tf.add_n([r.num_slices for r in results])
  return tf.cast(num_clipped / tf.maximum(num_slices, 1), tf.float32)


def _ids_of_replicas(strategy, gradients) -> tf.Tensor | None:
  """Returns the rows that any replica touched; None where they are unknown."""
  of_replicas = [strategy.experimental_local_results(g) for g in gradients]
  if any(len(g) < strategy.num_replicas_in_sync for g in of_replicas):
    # The other workers' ids are not available: all rows have to be measured.
    return None
  return clip.touched_ids([g for of_one in of_replicas for g in of_one])
