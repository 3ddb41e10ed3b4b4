# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Any strategy, with variables clipped after each update."""

from __future__ import annotations

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import cluster_config
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute import refusals
from tfplugin.distribute.clipping import clip_rules
from tfplugin.distribute.clipping import clipping_extended
from tfplugin.ops import norm_clipping


class VariableClippingStrategy(refusals.OneStrategy):
  """A strategy like `base_strategy` that clips variables after each update.

  After every update by an optimizer, each slice of a selected variable along
  the given dims has an L2 norm of at most `max_norm`. Slices within the bound
  are not changed, and neither are gradients. On a sparse gradient only the rows
  that it names are clipped, unless dims contain dimension 0. An optimizer such
  as Adam also moves rows without a gradient. These are clipped when the next
  gradient names them, or at once with `rows='all'`. Assignments, for example of
  moving averages, are not clipped.

  The result is also an instance of the class of `base_strategy`, and is used in
  its place: in an Estimator's `RunConfig`, with `strategy.scope()`,
  `strategy.run` and `Model.fit` as far as the base strategy supports these.
  `base_strategy` itself is not changed.

  It is tested with TensorFlow's Mirrored, MultiWorkerMirrored and both
  parameter-server strategies, and with tfplugin's. It is also tested with a
  `ClusterCoordinator` and its partitioned variables. With an
  `ElasticAverageStrategy` the local copies are clipped. The elastic rule mixes
  points of a convex set, so copies and centre stay in bounds if the initial
  values are.

  With asynchronous workers the clip follows the worker's own update. Another
  worker's update may come between the two. That worker's own clip follows it.

  Args:
    base_strategy: Any `tf.distribute.Strategy`, v1 or v2.
    rules: A mapping from variables to the dims that a slice extends over, an
      integer or integers; `[]` clips each value by itself. A key is a regular
      expression, searched in the variable's name, or a predicate of the name.
    max_norm: The bound, greater than 0.
    rows: `'touched'` or `'all'`: the rows to check after a sparse gradient.

  Raises:
    TypeError: An argument has the wrong type.
    ValueError: `max_norm` is not positive, `rules` is empty, `rows` is unknown,
      or `base_strategy` clips already. In the first training step, also: a rule
      selects no trainable variable, or one that is updated and was made outside
      the scope; or dims do not fit a variable.

  Example:
  >>> import tensorflow as tf
  >>> import tfplugin.distribute
  >>> strategy = tfplugin.distribute.VariableClippingStrategy(
  ...     tf.distribute.OneDeviceStrategy('/cpu:0'), {'kernel': 0}, 1.0)
  >>> with strategy.scope():
  ...   kernel = tf.Variable([[3.0, 0.5], [4.0, 0.5]], name='kernel')
  >>> def step():
  ...   sgd = tf.compat.v1.train.GradientDescentOptimizer(1.0)
  ...   sgd.apply_gradients([(tf.zeros([2, 2]), kernel)])
  >>> strategy.run(tf.function(step))
  >>> [[round(float(x), 2) for x in row] for row in kernel.numpy()]
  [[0.6, 0.5], [0.8, 0.5]]

  Differences from tf.contrib: contrib had the optimizer only.
  """

  def __new__(cls, base_strategy=None, rules=None, max_norm=None, *,
              rows='touched'):
    """Returns the strategy; without arguments, a blank target of a copy."""
    if cls is not VariableClippingStrategy:
      return object.__new__(cls)
    _check_base(base_strategy)
    bound = norm_clipping.check_max_norm(max_norm)
    clip_rules.check_rows(rows)
    try:
      parsed = clip_rules.parse(rules)
    except (TypeError, ValueError) as error:
      raise type(error)(clipping_extended.rules_error(error)) from error
    resolver = base_strategy.cluster_resolver
    if resolver is None or not resolver.cluster_spec():
      cluster_config.rewrite()
    strategy = _tf_internals.strategy_with_mixins(
        base_strategy, cls, _mixin_for(base_strategy))
    strategy.extended.set_clipping(parsed, bound, rows)
    return strategy

  def __init__(self, base_strategy: tf.distribute.Strategy,
               rules: clip_rules.Rules, max_norm: float, *,
               rows: str = 'touched'):
    del base_strategy, rules, max_norm, rows  # See __new__.

  @property
  def described_as(self) -> str:
    """The strategy's name in messages; the class has the name of the base."""
    return f'VariableClippingStrategy over {type(self).__name__}'

  def scope(self):
    """Enters the scope as `tf.distribute.Strategy.scope`.

    A v1 parameter-server strategy can be entered in a graph only, and raises
    RuntimeError in eager mode.
    """
    if isinstance(self,
                  tf.compat.v1.distribute.experimental.ParameterServerStrategy):
      parameter_server_base.refuse_eager(
          self.described_as,
          'for `Model.fit` and tf.function put it over '
          '`tf.distribute.MirroredStrategy`')
    return super().scope()


def _mixin_for(base_strategy) -> type:
  """Returns the mixin before the extended class of a base strategy."""
  extended = base_strategy.extended
  if isinstance(extended, _tf_internals.MirroredExtended):
    return clipping_extended.MirroredClippingExtended
  # The strategy of a `ClusterCoordinator`, of the same class, is not packed.
  if isinstance(base_strategy, tf.compat.v1.distribute.Strategy) and isinstance(
      extended, _tf_internals.ParameterServerStrategyExtended):
    return clipping_extended.PackedClippingExtended
  return clipping_extended.ClippingExtended


def _check_base(base_strategy) -> None:
  if not isinstance(base_strategy, (tf.distribute.Strategy,
                                    tf.compat.v1.distribute.Strategy)):
    raise TypeError(
        '`base_strategy` must be an instance of `tf.distribute.Strategy`. '
        f'Received: {base_strategy!r}. Pass e.g. '
        '`tf.distribute.MirroredStrategy()`.')
  if isinstance(base_strategy, VariableClippingStrategy):
    raise ValueError(
        '`base_strategy` must not clip variables itself. '
        f'Received: {base_strategy!r}. Put all rules into one '
        'VariableClippingStrategy.')
