# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mixin that clips a variable after each update, for any strategy."""

from __future__ import annotations

import functools
import weakref

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import branching
from tfplugin.distribute import parameter_server_base
from tfplugin.distribute import per_graph
from tfplugin.distribute import untuned_inputs
from tfplugin.distribute.clipping import clip
from tfplugin.distribute.clipping import clip_rules
from tfplugin.distribute.packed import packed_steps
from tfplugin.distribute.updates import assigning_optimizers
from tfplugin.distribute.updates import met_updates
from tfplugin.distribute.updates import update_audit
from tfplugin.distribute.variables import mirrored_variables


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

  def begin_updates(self, variables) -> None:
    """Notes the variables that an optimizer is about to update together."""
    self._in_step = {_tf_internals.own_variable(v).ref() for v in variables}

  def incomplete(self) -> list[tf.Variable]:
    """Returns and forgets variables whose group awaits another part."""
    waiting = [ref.deref() for ref, updates in self._updated.items() if updates]
    self._updated.clear()
    return waiting

  def dims_of(self, variable: tf.Variable, rules):
    """Returns the dims that `variable` is clipped along, or None."""
    if variable.ref() not in self._known:
      trained = [reference() for reference in self.trained]
      trained = [v for v in trained if v is not None]
      try:
        self._dims = clip_rules.resolve(rules, trained)
        selected = clip_rules.resolve(rules, [*trained, variable])
      except ValueError as error:
        raise ValueError(rules_error(error)) from error
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
    an update of the optimizer's to one of them is missing. A part without a
    gradient has none, and is clipped with the others. `component` is the
    variable that was updated for `variable`, the optimizer's. `copies_of`
    returns the components of a variable, one per device.
    """
    # A variable has a component per device, in the order of the devices.
    self._updated.setdefault(variable.ref(), []).append((component, result))
    group = self._groups[variable.ref()]
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


class ClippingExtended(met_updates.MetUpdates, untuned_inputs.UntunedInputs):
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
    return self._clip_states.here(ClippingState)

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
    trained = [reference() for reference in state.trained]
    for variable, operation in self.unseen_updates(
        result, [v for v in trained if v is not None]):
      if state.dims_of(variable, self._clip_rules) is not None:
        raise update_audit.refusal(
            self._container_strategy().described_as, variable, operation,
            clip.AUDITED)

  def _clip(self, state, var, component, axes, args, result):
    """Clips the group of `component` once `result` is its last update."""
    updated = state.group_is_updated(
        var, component, result, functools.partial(
            assigning_optimizers.copies_of, self._container_strategy()))
    if updated is None:
      return result
    components, results = updated
    ids = None if self._clip_all_rows else next(
        (a.indices for a in args if isinstance(a, tf.IndexedSlices)), None)
    done = [r for r in tf.nest.flatten(list(results)) if r is not None]
    with tf.control_dependencies(done), update_audit.OF_RULES.passing(
        components):
      clipped = clip.clip(components, axes, self._clip_norm, ids).operation
    if not isinstance(result, (tf.Variable, tf.Tensor)):
      return clipped
    with tf.control_dependencies([] if clipped is None else [clipped]):
      return component.read_value()


class PackedClippingExtended(ClippingExtended, packed_steps.PackedSteps):
  """Mixin before an extended class of v1 parameter servers."""


class MirroredClippingExtended(ClippingExtended,
                               mirrored_variables.MirroredInGraph):
  """Mixin before an extended class that has a copy per device."""


def rules_error(error: Exception) -> str:
  """Returns an error message of `clip_rules`, for the argument `rules`."""
  return str(error).replace('vars_to_clip_dims', 'rules')
