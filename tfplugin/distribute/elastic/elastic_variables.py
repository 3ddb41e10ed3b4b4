# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Roles of variables under elastic averaging, their creators, and copies."""

from __future__ import annotations

import contextlib
import enum
import functools
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Callable

import numpy as np
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import cluster_task
from tfplugin.distribute import per_graph
from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_exchange
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.elastic import elastic_start

tf1 = tf.compat.v1

# Arguments that a copy takes over from its variable.
_TAKEN = ('trainable', 'collections', 'constraint', 'synchronization',
          'aggregation', 'distribute_strategy')
# The copies of a graph, by the names of their handles.
_copies = per_graph.PerGraph()
# The current maker of variables: None for a model, a scope for the state of an
# optimizer, and `_PAIRING` for a centre and its copy, which scopes ignore.
_maker = per_graph.ContextValue(None)
_PAIRING = object()


class Role(enum.Enum):
  """Role of a variable under elastic averaging."""

  ELASTIC = 'a local copy on the worker, a centre on the parameter server'
  SHARED = 'one variable on the parameter server'
  LOCAL = 'one variable on the worker, not in the checkpoint'
  STATE = 'optimizer state, on the worker'


def role_of(kwargs: dict[str, Any], statistics: str) -> Role:
  """Returns a variable's role, from the arguments of its creator.

  LOCAL: metric variables and everything else in LOCAL_VARIABLES. STATE: a
  variable that is colocated with another one, as an optimizer's slots are, and
  any other variable that an optimizer makes. SHARED: the global step, the sums
  of a Keras metric, types that have no average, and with `statistics='shared'`
  the model's non-trainable variables. ELASTIC: the rest.
  """
  if _tf_internals.is_global_step(kwargs):
    return Role.SHARED
  if _tf_internals.is_local(kwargs):
    return Role.LOCAL
  if (kwargs.get('colocate_with') is not None or
      _tf_internals.is_made_by_optimizer()):
    return Role.STATE
  if not _is_floating(kwargs) or _tf_internals.is_streaming(kwargs):
    return Role.SHARED
  if not _tf_internals.is_trainable(kwargs) and statistics == 'shared':
    return Role.SHARED
  return Role.ELASTIC


def _is_floating(kwargs: dict[str, Any]) -> bool:
  """Returns whether a variable will be; true for a callable without a type."""
  dtype, value = kwargs.get('dtype'), kwargs.get('initial_value')
  if dtype is None and value is not None and not callable(value):
    dtype = getattr(value, 'dtype', None) or np.asarray(value).dtype
  return dtype is None or tf.as_dtype(dtype).base_dtype.is_floating


def localized(collections: Sequence[str] | None) -> list[str]:
  """Returns `collections` for a variable that is not to be saved or shared."""
  return [tf1.GraphKeys.LOCAL_VARIABLES
          if key == tf1.GraphKeys.GLOBAL_VARIABLES else key
          for key in collections or [tf1.GraphKeys.GLOBAL_VARIABLES]]


def center_of(next_creator: Callable, kwargs: dict[str, Any]) -> tf.Variable:
  """Makes the centre of a variable, under the variable's own name."""
  return next_creator(**dict(kwargs, trainable=False, collections=[
      tf1.GraphKeys.GLOBAL_VARIABLES]))


def copy_arguments(kwargs: dict[str, Any]) -> dict[str, Any]:
  """Returns the arguments of the creator of a variable's copy."""
  return dict(kwargs, trainable=_tf_internals.is_trainable(kwargs),
              collections=localized(kwargs.get('collections')))


def copy_of(center: tf.Variable, **kwargs: Any) -> LocalCopy:
  """Makes a copy of a centre; `kwargs` are of the variable's creator."""
  return LocalCopy(center, **{
      name: kwargs[name] for name in _TAKEN if name in kwargs})


def note_copies(variable: tf.Variable, copies: Sequence[tf.Variable]) -> None:
  """Shows `variable` to `tf.custom_gradient` by the handles of its copies.

  They are no global variables, among which TensorFlow searches in a graph.
  """
  if not tf1.executing_eagerly_outside_functions():
    _tf_internals.regularize_once()
    _tf_internals.find_in_custom_gradients(
        lambda name: (_copies.for_current_graph() or {}).get(name))
    _copies.for_current_graph(dict).update(
        (getattr(copy, 'handle', copy).op.name, variable) for copy in copies)


class LocalCopy(_tf_internals.ResourceVariable):
  """A worker's copy that presents itself as its centre.

  Reading, differentiating and updating it use the copy. A `Saver` and a warm
  start use the centre, and its name is the centre's. So a checkpoint never
  holds one worker's copy by mistake. For the same reason `session.run(v)`
  returns the centre; fetch `v.value()` for the copy.
  """

  def __init__(self, center: tf.Variable, **kwargs):
    """Makes the copy from the centre, with `kwargs` of `tf.Variable`."""
    self._center = None
    super().__init__(
        initial_value=center.read_value(),
        name=center.name.split(':')[0] + '/local_copy',
        **kwargs)
    self._center = center
    self._graph_element = _tf_internals.graph_element(center)

  @property
  def center(self) -> tf.Variable:
    """The variable of which this is a copy."""
    return self._center

  @property
  def name(self) -> str:
    """The centre's name."""
    return self._center.name if self._center is not None else super().name

  @property
  def op(self) -> tf.Operation:
    """The centre's op, after which optimizers name their slots."""
    return self._center.op

  @property
  def initial_value(self):
    """The centre's value, or its initial one before initialisation.

    A worker initialises its state in a later run than the chief the centre.
    There the centre's initializer would draw another value.
    """
    return elastic_start.value_or_initial(self._center)

  def initialized_value(self):
    """Returns the centre's value, or its initial one before initialisation."""
    return elastic_start.value_or_initial(self._center)

  @property
  def _initializer_op(self):
    return self._own_initializer

  @_initializer_op.setter
  def _initializer_op(self, op):
    # TensorFlow's warm start replaces the initialiser of a variable. The copy
    # still starts from the centre, and the centre from the checkpoint.
    if self._center is None or op is None:
      self._own_initializer = op
    else:
      _tf_internals.initialize_from(self._center, op)

  def _set_save_slice_info(self, save_slice_info):
    super()._set_save_slice_info(save_slice_info)
    _tf_internals.set_save_slice_info(self._center, save_slice_info)

  def _gather_saveables_for_checkpoint(self):
    # For object-based checkpoints, such as those of Keras models.
    return _tf_internals.saveables_of_copies(
        (self._center,), self._center, self._center.op.name)

  def read_value_no_copy(self):
    """Raises a RuntimeError: only a Saver calls it, and would save the copy."""
    raise RuntimeError(
        'A Saver of a partitioned variable, or one with names of its own, must '
        f'be given centre variables. Received: the local copy {self.name!r}. '
        'Pass `tf.compat.v1.global_variables()` to the Saver instead of the '
        'trainable variables.')


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
    with self.scope(), _maker.set_to(self):
      yield

  def _create_state(self, next_creator: Callable, **kwargs):
    if per_graph.is_shared.get():
      return next_creator(**kwargs)
    collections = kwargs.get('collections') or ()
    if not self._saves_state:  # Then the worker initialises it again.
      kwargs['collections'] = localized(collections)
    with placement.device_override(self.worker_device):
      variable = elastic_start.create_state(next_creator, self.pairs, **kwargs)
    if tf1.GraphKeys.LOCAL_VARIABLES not in collections:
      self.state.append(variable)
    return variable

  def _create(self, next_creator: Callable, **kwargs):
    maker = _maker.get()
    if maker is self:
      return self._create_state(next_creator, **kwargs)
    if maker is not None:
      return next_creator(**kwargs)
    role = role_of(kwargs, self.statistics)
    if role is Role.LOCAL:
      with placement.device_override(self.worker_device):
        return next_creator(**kwargs)
    if role is Role.ELASTIC and (
        _tf_internals.is_trainable(kwargs) or not self.has_statistics):
      with _maker.set_to(_PAIRING):
        variable = self._create_pair(next_creator, **kwargs)
      note_copies(variable, [variable])
      return variable
    # A moving average asks for the device of its variable, which may be local.
    # On this worker, the others would wait forever for its initialisation.
    with placement.outer_devices(self._devices):
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
    with tf.init_scope(), placement.device_override(self.worker_device):
      # The first centre of every worker's graph is on the same server.
      servers = [pair.center.device for pair in self.pairs] or ['']
      return elastic_exchange.Exchange(
          self.settings, self.task.num_workers, elastic_start.create_local_step(
              self.worker_device, self.settings, self.task, servers[0]))

  def _create_pair(self, next_creator: Callable, **kwargs) -> tf.Variable:
    kwargs['use_resource'] = True
    # Not in the body of a loop, which may make a variable.
    with tf.init_scope():
      with placement.outer_devices(self._devices):
        center = center_of(next_creator, kwargs)
      if not center.dtype.is_floating:
        return center
      with placement.device_override(self.worker_device):
        copy = copy_of(center, **copy_arguments(kwargs))
    self._pairs[copy.ref()] = elastic_pairs.Pair(
        (copy,), center, copy.trainable)
    return copy
