# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variable creators of a worker that builds its model without a strategy."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_exchange
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import elastic_saving
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.distribute.variables import shared_variables
from tfplugin.distribute.variables import variable_arguments
from tfplugin.ops import elastic

tf1 = tf.compat.v1

# Whether a scope is making a pair: scopes around it leave both halves alone.
_pairing = contextvars.ContextVar('_pairing', default=False)


class ElasticScope:
  """Makes the variables of a model that one worker of a cluster builds.

  The creator of a variable is asked for its role. A pair is made once, also
  inside two scopes: the inner one makes it.

  Attributes:
    worker_device: The device that the local variables are on.
    has_statistics: Whether an optimizer has been applied: a variable that comes
      later and is not trained is shared.
  """

  # What a variable that is trained must be, and what to do about another one.
  _rule, _remedy = '', ''

  def __init__(self, worker_device: str, statistics: str,
               saves_state: bool = False):
    """Prepares one graph.

    Args:
      worker_device: The device of this worker; empty for the session's own.
      statistics: `'average'` or `'shared'`, see `role_of`.
      saves_state: Whether this worker's optimizer state is saved.
    """
    self.worker_device = worker_device
    self._saves_state = saves_state
    self._statistics = statistics
    self._pairs = {}
    self._is_active = False
    self._makes_state = False
    self._devices = []
    self._state = set()
    self.has_statistics = False

  @property
  def pairs(self) -> list[elastic_pairs.Pair]:
    """The averaged variables so far, in the order of their creation."""
    return list(self._pairs.values())

  def pair_of(self, local: tf.Variable) -> Optional[elastic_pairs.Pair]:
    """Returns the pair of a local variable, or None.

    Args:
      local: Any variable, found by identity.
    """
    return self._pairs.get(local.ref())

  def pairs_of(self, var_list: Iterable) -> list[elastic_pairs.Pair]:
    """Returns the pair of each variable that an optimizer is going to train.

    Args:
      var_list: Local variables, whole or partitioned.

    Raises:
      ValueError: A variable was made outside this scope.
    """
    flat = [part for item in var_list for part in parts_of(item)]
    unknown = [v.name for v in flat if self.pair_of(v) is None]
    if unknown:
      raise ValueError(
          f'Every variable that is trained must be made {self._rule}. '
          f'Received: {unknown}. {self._remedy}, or leave them out by '
          '`var_list`.')
    return [self.pair_of(variable) for variable in flat]

  def with_pairs(self, exchange: elastic_exchange.Exchange,
                 grads_and_vars: types.GradsAndVars, rho: elastic.Rate = 0.0,
                 ) -> types.GradsAndVars:
    """Adds the pairs of all variables that have a gradient to an exchange.

    Args:
      exchange: The exchange that is going to move them.
      grads_and_vars: Gradients, which may be None, and variables.
      rho: The strength of the penalty that is going to be added.

    Returns:
      The gradients and variables as a list.

    Raises:
      ValueError: A variable was made outside this scope.
    """
    grads_and_vars = list(grads_and_vars)
    pairs = self.pairs_of([v for g, v in grads_and_vars if g is not None])
    self.create_local_centers(pairs, rho)
    exchange.add(*pairs)
    self.has_statistics = True
    return grads_and_vars

  def create_local_centers(self, pairs: Iterable[elastic_pairs.Pair],
                           rho: elastic.Rate) -> None:
    """Makes the worker's views of centres that need one and have none yet.

    Args:
      pairs: Averaged variables.
      rho: The strength of the penalty.
    """
    for pair in pairs if elastic.is_penalty(rho) else ():
      if pair.trainable and pair.local_center is None:
        with tf.init_scope(), placement.only_on(self.worker_device):
          pair.local_center = self._create_local_center(pair)

  def _create_local_center(self, pair: elastic_pairs.Pair) -> tf.Variable:
    return elastic_variables.local_center(pair.center)

  @contextlib.contextmanager
  def scope(self) -> Iterator[None]:
    """Gives every variable made inside it its role, whatever makes it."""
    if self._is_active or self._makes_state:
      yield
      return
    self._devices = _tf_internals.device_functions()
    self._is_active = True
    try:
      with tf.variable_creator_scope(self._create):
        yield
    finally:
      self._is_active = False

  @contextlib.contextmanager
  def local_state(self) -> Iterator[None]:
    """Makes every variable inside it state of an optimizer, on the worker."""
    outer, self._makes_state = self._makes_state, True
    try:
      with _creator_scope_of_all_graphs(self._create_state):
        yield
    finally:
      self._makes_state = outer

  def _create_state(self, next_creator: Callable, **kwargs):
    if shared_variables.is_shared():
      return next_creator(**kwargs)
    collections = kwargs.get('collections') or ()
    kwargs['collections'] = elastic_saving.state_collections(
        collections, self._saves_state)
    with placement.only_on(self.worker_device):
      variable = next_creator(**kwargs)
    if tf1.GraphKeys.LOCAL_VARIABLES not in collections:
      self._state.add(variable.ref())
    return variable

  def _create(self, next_creator: Callable, **kwargs):
    if self._makes_state or _pairing.get():
      return next_creator(**kwargs)
    role = elastic_variables.role_of(kwargs, self._statistics)
    if role is elastic_variables.Role.LOCAL:
      with placement.only_on(self.worker_device):
        return next_creator(**kwargs)
    if role is elastic_variables.Role.ELASTIC and (
        variable_arguments.is_trainable(kwargs) or not self.has_statistics):
      token = _pairing.set(True)
      try:
        return self._create_pair(next_creator, **kwargs)
      finally:
        _pairing.reset(token)
    # Beside a local variable, as a moving average asks to be, it would be on
    # this worker, and the others would wait for theirs for ever.
    with placement.as_within(self._devices):
      return next_creator(**kwargs)

  def _create_pair(self, next_creator: Callable, **kwargs) -> tf.Variable:
    """Makes both halves, notes the pair, returns the half of the model."""
    raise NotImplementedError


class CopyScope(ElasticScope):
  """Makes centres under the variables' names, as a strategy does."""

  _rule = 'by the model_fn below `elastic_average`'
  _remedy = 'Make them there'

  def _create_pair(self, next_creator: Callable, **kwargs) -> tf.Variable:
    kwargs['use_resource'] = True
    # The body of a loop may make a variable; the copy starts from the centre.
    with tf.init_scope():
      with placement.as_within(self._devices):
        center = elastic_variables.center_of(next_creator, kwargs)
      if not center.dtype.is_floating:
        return center
      with placement.only_on(self.worker_device):
        copy = elastic_variables.copy_of(center, kwargs)
    self._pairs[copy.ref()] = elastic_pairs.Pair(
        (copy,), center, variable_arguments.is_trainable(kwargs))
    return copy


@contextlib.contextmanager
def _creator_scope_of_all_graphs(creator: Callable) -> Iterator[None]:
  """A creator scope here and in the graph that variables are lifted to.

  The branch of a `tf.cond` of control flow v2 is a graph of its own.
  """
  with contextlib.ExitStack() as stack:
    here = tf1.get_default_graph()
    stack.enter_context(tf.variable_creator_scope(creator))
    with tf.init_scope():
      if tf1.get_default_graph() is not here:
        stack.enter_context(tf.variable_creator_scope(creator))
    yield


def parts_of(variable) -> list[tf.Variable]:
  """Returns the variables that a whole or partitioned variable consists of.

  Args:
    variable: One of `get_variable`. The class of a partitioned variable has no
      public name; it is iterable.
  """
  return [variable] if isinstance(variable, tf.Variable) else list(variable)
