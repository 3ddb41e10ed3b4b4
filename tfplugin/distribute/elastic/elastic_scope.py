# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variable creators of a worker that builds its model without a strategy."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import cluster_task
from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_exchange
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.elastic import elastic_start
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.distribute.variables import context_value
from tfplugin.distribute.variables import variable_arguments

tf1 = tf.compat.v1

# The current maker of variables: None for a model, a scope for the state of an
# optimizer, and `_PAIRING` for a centre and its copy, which scopes ignore.
_maker = context_value.ContextValue(None)
_PAIRING = object()


class ElasticScope:
  """Scope that makes the variables of a model on one worker of a cluster.

  The arguments of a variable's creator give its role. Inside two scopes, the
  inner one makes a centre and its copy, and the outer one does not.

  Attributes:
    worker_device: The device that the local variables are on.
    statistics: `'average'` or `'shared'`, see `role_of`.
    state: The variables that optimizers made, on the worker, and that would be
      saved without elastic averaging. Counters of one worker would not.
    has_statistics: Whether an optimizer has been applied. A later variable that
      is not trained is shared.
  """

  # For messages: where a trained variable must be made, and the remedy.
  _rule: str
  _remedy: str

  def __init__(self, worker_device: str, statistics: str,
               saves_state: bool = False):
    """Prepares one graph; an empty device is the session's own."""
    self.worker_device = worker_device
    self._saves_state = saves_state
    self.statistics = statistics
    self.has_statistics = False
    self._pairs = {}
    self.state = []
    self._devices = None  # The outer devices, while this scope is entered.

  @property
  def pairs(self) -> list[elastic_pairs.Pair]:
    """The averaged variables so far, in the order of their creation."""
    return list(self._pairs.values())

  def pair_of(self, local: tf.Variable) -> elastic_pairs.Pair | None:
    """Returns the `Pair` of a local variable, found by identity, or None."""
    return self._pairs.get(local.ref())

  def pairs_of(self, var_list: Iterable) -> list[elastic_pairs.Pair]:
    """Returns the `Pair` of each variable; a ValueError names others."""
    flat = [_tf_internals.own_variable(part) for item in var_list
            for part in _tf_internals.parts_of(item)]
    unknown = [v.name for v in flat if self.pair_of(v) is None]
    if unknown:
      raise ValueError(
          f'Every variable that is trained must be made {self._rule}. '
          f'Received: {unknown}. {self._remedy}, or leave them out by '
          '`var_list`.')
    return [self.pair_of(variable) for variable in flat]

  @contextlib.contextmanager
  def scope(self) -> Iterator[None]:
    """Assigns a role to every variable made inside it."""
    if self._devices is not None:
      yield
      return
    self._devices = _tf_internals.device_functions()
    graph = tf1.get_default_graph()
    try:
      with contextlib.ExitStack() as stack:
        stack.enter_context(tf.variable_creator_scope(self._create))
        # In control flow v2 the branch of a `tf.cond` is a separate graph.
        with tf.init_scope():
          if tf1.get_default_graph() is not graph:
            stack.enter_context(tf.variable_creator_scope(self._create))
        yield
    finally:
      self._devices = None

  @contextlib.contextmanager
  def local_state(self) -> Iterator[None]:
    """Makes every variable inside it optimizer state, on the worker."""
    with self.scope(), _maker.being(self):
      yield

  def _create_state(self, next_creator: Callable, **kwargs):
    if context_value.is_shared.get():
      return next_creator(**kwargs)
    collections = kwargs.get('collections') or ()
    if not self._saves_state:  # Then the worker initialises it again.
      kwargs['collections'] = elastic_variables.localized(collections)
    with placement.only_on(self.worker_device):
      variable = next_creator(**kwargs)
    if tf1.GraphKeys.LOCAL_VARIABLES not in collections:
      self.state.append(variable)
    return variable

  def _create(self, next_creator: Callable, **kwargs):
    maker = _maker.get()
    if maker is self:
      return self._create_state(next_creator, **kwargs)
    if maker is not None:
      return next_creator(**kwargs)
    role = elastic_variables.role_of(kwargs, self.statistics)
    if role is elastic_variables.Role.LOCAL:
      with placement.only_on(self.worker_device):
        return next_creator(**kwargs)
    if role is elastic_variables.Role.ELASTIC and (
        variable_arguments.is_trainable(kwargs) or not self.has_statistics):
      with _maker.being(_PAIRING):
        variable = self._create_pair(next_creator, **kwargs)
      elastic_variables.note_copies(variable, [variable])
      return variable
    # A moving average asks for the device of its variable, which may be local.
    # On this worker, the others would wait forever for its initialisation.
    with placement.as_within(self._devices):
      return next_creator(**kwargs)

  def _create_pair(self, next_creator: Callable, **kwargs) -> tf.Variable:
    """Makes and registers centre and copy; returns the model's variable."""
    raise NotImplementedError


class CopyScope(ElasticScope):
  """Scope that makes centres under the variables' names, as a strategy does."""

  _rule = 'by the model_fn below `elastic_average`'
  _remedy = 'Make them there'

  def __init__(self, settings: elastic_settings.ElasticSettings,
               task: cluster_task.ClusterTask):
    """Prepares one graph of the worker `task`."""
    super().__init__(task.device, settings.statistics, task.is_chief)
    self.settings = settings
    self.task = task

  @functools.cached_property
  def exchange(self) -> elastic_exchange.Exchange:
    """The exchange of the graph, made with the first update."""
    with tf.init_scope(), placement.only_on(self.worker_device):
      # The first centre of every worker's graph is on the same server.
      servers = [pair.center.device for pair in self.pairs] or ['']
      return elastic_exchange.Exchange(
          self.settings, self.task.num_workers, elastic_start.create_local_step(
              self.worker_device, self.settings, self.task, servers[0]))

  def _create_pair(self, next_creator: Callable, **kwargs) -> tf.Variable:
    kwargs['use_resource'] = True
    # Not in the body of a loop, which may make a variable.
    with tf.init_scope():
      with placement.as_within(self._devices):
        center = elastic_variables.center_of(next_creator, kwargs)
      if not center.dtype.is_floating:
        return center
      with placement.only_on(self.worker_device):
        copy = elastic_variables.LocalCopy(
            center, **elastic_variables.copy_arguments(kwargs))
    self._pairs[copy.ref()] = elastic_pairs.Pair(
        (copy,), center, copy.trainable)
    return copy
