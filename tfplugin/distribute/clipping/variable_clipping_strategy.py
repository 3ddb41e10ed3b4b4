# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Any strategy, with variables clipped after each update by a mixin."""

from __future__ import annotations

import functools
import weakref

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import branching
from tfplugin.distribute import cluster_config
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute import per_graph
from tfplugin.distribute import refusals
from tfplugin.distribute import untuned_inputs
from tfplugin.distribute.clipping import clip
from tfplugin.distribute.clipping import clip_rules
from tfplugin.distribute.packed import packed_steps
from tfplugin.distribute.updates import intercepted_updates
from tfplugin.distribute.updates import optimizer_interception
from tfplugin.distribute.variables import mirrored_variables
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
    parsed = clip_rules.parse(rules)
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

  @refusals.on_instance
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


class ClippingState:
  """The variables made in one graph, or eagerly, and their slices to clip.

  `trained` has weak references to the trainable variables, in the order of
  their creation.
  """

  def __init__(self):
    self.trained = []
    self._dims = None
    self._known = set()
    self._groups = {}
    self._updated = {}
    self._in_step = set()
    self._clipped = {}
    self._warned_of = set()

  def begin_updates(self, variables) -> None:
    """Notes the variables that an optimizer is about to update together."""
    self._in_step = {_tf_internals.own_variable(v).ref() for v in variables}

  def incomplete(self) -> list[tf.Variable]:
    """Returns and forgets variables whose group awaits another part."""
    waiting = [ref.deref() for ref, updates in self._updated.items() if updates]
    self._updated.clear()
    return waiting

  def warn_of_unused(self, rules) -> None:
    """Warns about rules that clip nothing, if the step updates variables."""
    if not self._known:
      return
    used = clip_rules.used_by(rules, _living(self._clipped.values()))
    unused = [r for r in rules if r not in used | self._warned_of]
    self._warned_of.update(unused)
    clip_rules.warn_of_unused(
        unused, _living(self.trained), 'an optimizer',
        'Put them into the `var_list` of an optimizer, or leave out the rule. '
        'Ignore this if a later step updates them.')

  def dims_of(self, variable: tf.Variable, rules):
    """Returns the dims that `variable` is clipped along, or None."""
    if variable.ref() not in self._known:
      trained = _living(self.trained)
      self._dims = clip_rules.resolve(rules, trained)
      selected = clip_rules.resolve(rules, [*trained, variable])
      if len(selected) > len(self._dims):
        raise ValueError(
            '`rules` must select trainable variables that were made under the '
            f'strategy. Received: {clip_rules.name_of(variable)!r}, which an '
            'optimizer updates. Make it inside `strategy.scope()`, with '
            '`trainable=True`.')
      self._known = {v.ref() for v in trained} | {variable.ref()}
      for group in clip_rules.group_parts(trained, self._dims):
        self._groups.update((v.ref(), group) for v in group)
    return self._dims.get(variable.ref())

  def group_is_updated(self, variable: tf.Variable, component: tf.Variable,
                       result, copies_of):
    """Notes an update; returns (components, results) of a completed group.

    The group has all parts that are clipped together. The result is None while
    an update of one of them is missing. A part without a gradient has no
    result, and is clipped with the others. `component` is the variable that was
    updated for `variable`. `copies_of` returns a variable's components.
    """
    # A variable has a component per device, in the order of the devices.
    self._updated.setdefault(variable.ref(), []).append((component, result))
    group = self._groups[variable.ref()]
    self._clipped.update((v.ref(), weakref.ref(v)) for v in group)
    awaited = group
    if variable.ref() in self._in_step:
      awaited = [v for v in group if v.ref() in self._in_step]
    if not all(self._updated.get(v.ref()) for v in awaited):
      return None
    updates = {v.ref(): self._updated[v.ref()].pop(0) for v in awaited}
    device = next((index for index, copy in enumerate(copies_of(variable))
                   if copy is component), 0)
    return tuple(zip(*[
        updates[v.ref()] if v.ref() in updates else
        (copies_of(v)[device], None) for v in group]))


def _living(references) -> list[tf.Variable]:
  """Returns the variables of weak references that still exist."""
  found = [reference() for reference in references]
  return [variable for variable in found if variable is not None]


class ClippingExtended(intercepted_updates.InterceptedUpdates,
                       untuned_inputs.UntunedInputs):
  """Mixin before the extended class of a strategy.

  Every update of an optimizer calls `_update` with a function that updates one
  component. The clip is added after that function, so that it runs wherever the
  strategy runs the update.
  """

  def set_clipping(self, rules, max_norm: float, rows: str) -> None:
    """Sets parsed rules and the bound; `rows` is one of `clip_rules.ROWS`."""
    self._clip_rules = rules
    self._clip_norm = max_norm
    self._clip_all_rows = rows == 'all'
    self._clip_states = per_graph.PerGraph()

  def _clip_state(self) -> ClippingState:
    return self._clip_states.for_current_graph(ClippingState)

  def _create_variable(self, next_creator, **kwargs):
    variable = super()._create_variable(next_creator, **kwargs)
    self._clip_state().trained.extend(
        weakref.ref(part) for part in _tf_internals.parts_of(variable)
        if part.trainable)
    return variable

  def _call_for_each_replica(self, fn, args, kwargs):
    if not tf.executing_eagerly():
      fn = branching.with_merges_in_branches(
          self._container_strategy(), fn, self._alone)
    return super()._call_for_each_replica(fn, args, kwargs)

  def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
    pairs = list(value_destination_pairs)
    if parameter_server_base.updates_variables(pairs):
      self._clip_state().begin_updates(v for _, v in pairs)
    return super()._batch_reduce_to(reduce_op, pairs, options)

  def _update(self, var, fn, args, kwargs, group):
    update = super()._update
    state = self._clip_state()
    if _tf_internals.is_variable_assignment(fn):
      return update(var, fn, args, kwargs, group)
    own = _tf_internals.own_variable(var)
    axes = state.dims_of(own, self._clip_rules)
    if axes is None:
      return update(var, fn, args, kwargs, group)

    def update_and_clip(component, *args, **kwargs):
      result = fn(component, *args, **kwargs)
      return self._clip(state, own, component, axes, args, result)

    return update(var, update_and_clip, args, kwargs, group)

  def _step_is_built(self, result):
    super()._step_is_built(result)
    state = self._clip_state()
    for variable in state.incomplete():
      raise ValueError(
          'Each part of a variable that is clipped across its parts must be '
          f'updated in a step. Received: an update of {variable.name!r} by a '
          'Keras optimizer, and none of another part. Use a '
          '`tf.compat.v1.train` optimizer, or a gradient for each part.')
    state.warn_of_unused(self._clip_rules)
    for variable, operation in self.unaudited_updates(
        result, _living(state.trained)):
      if state.dims_of(variable, self._clip_rules) is not None:
        raise optimizer_interception.refusal(
            self._container_strategy().described_as, variable, operation,
            clip.AUDITED)

  def _clip(self, state, var, component, axes, args, result):
    """Clips the group of `component` once `result` is its last update."""
    updated = state.group_is_updated(
        var, component, result, functools.partial(
            intercepted_updates.copies_of, self._container_strategy()))
    if updated is None:
      return result
    components, results = updated
    ids = None if self._clip_all_rows else clip.touched_ids(args)
    done = [r for r in tf.nest.flatten(list(results)) if r is not None]
    with tf.control_dependencies(done), (
        optimizer_interception.OF_RULES.recording(components)):
      clipped = clip.clip(components, axes, self._clip_norm, ids).operation
    if not isinstance(result, (tf.Variable, tf.Tensor)):
      return clipped
    with tf.control_dependencies([] if clipped is None else [clipped]):
      return component.read_value()


class PackedClippingExtended(ClippingExtended, packed_steps.PackedSteps):
  """Mixin before an extended class of v1 parameter servers."""


class MirroredClippingExtended(ClippingExtended,
                               mirrored_variables.MirroredInGraph,
                               intercepted_updates.InterceptedUpdates):
  """Mixin before an extended class that has a copy per device."""


def _mixin_for(base_strategy) -> type:
  """Returns the mixin before the extended class of a base strategy."""
  extended = base_strategy.extended
  if isinstance(extended, _tf_internals.MirroredExtended):
    return MirroredClippingExtended
  # The strategy of a `ClusterCoordinator`, of the same class, is not packed.
  if isinstance(base_strategy, tf.compat.v1.distribute.Strategy) and isinstance(
      extended, _tf_internals.ParameterServerStrategyExtended):
    return PackedClippingExtended
  return ClippingExtended


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
