# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gives each model variable a copy on the worker and a centre on the ps."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import Callable

import numpy as np
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.distribute.variables import shared_variables
from tfplugin.ops import elastic_arguments

tf1 = tf.compat.v1

# Old graphs and checkpoints hold this name.
GLOBAL_CENTER = 'global_center_variable'

# Whether a getter is making a pair: one around it is to leave both alone.
_pairing = contextvars.ContextVar('_pairing', default=False)


@dataclasses.dataclass(frozen=True)
class CenteredVariable:
  """One averaged variable.

  Attributes:
    local: The copy that the model computes with, on the worker.
    center: What all workers share, on a parameter server.
    trainable: Whether it is trained; a statistic is not.
    initializer: The copy's, as long as no warm start replaces it.
  """

  local: tf.Variable
  center: tf.Variable
  trainable: bool
  initializer: tf.Operation


class ElasticAverageCustomGetter:
  """Makes a model's variables local and adds the centre of each.

  To be used with `tf.compat.v1.train.replica_device_setter`, which puts the
  centres and the global step on parameter servers:

    with tf.compat.v1.variable_scope('', custom_getter=getter): ...model...
    with getter.scope(): ...a model of Keras layers or tf.Variable...

  A custom getter sees what `get_variable` and `tf.compat.v1.layers` make;
  `scope()` sees Keras layers and `tf.Variable` as well. A variable is paired
  once, also inside both.

  Variables created, for a trainable variable `<name>` of any floating type:
    <name>: on the worker, in LOCAL_VARIABLES and TRAINABLE_VARIABLES.
    global_center_variable/<name>: where the variable itself would have been,
      in GLOBAL_VARIABLES.
  A floating point variable that is not trained, as the moving mean of a batch
  normalization, is paired likewise: it is local, and the optimizer averages it
  at each communication. With `statistics='shared'` it stays one variable on a
  parameter server, and so does every integer, e.g. the global step, and what is
  made after the first `apply_gradients`, e.g. the averages of
  `tf.train.ExponentialMovingAverage`: that communication does not know them.

  Supported: partitioned variables, reuse, several scopes, resource and
  reference variables.

  Differences from tf.contrib:
    * The copy of the centre that the penalty needs is made by the optimizer,
      and only if there is a penalty: with rho=0 a worker keeps no third copy.
    * Keras layers and `tf.Variable` are seen, by `scope()`. contrib paired none
      of them, and the model was shared in silence.
    * Non-trainable variables of layers are accepted; contrib raised
      `argument of type 'NoneType' is not iterable` for batch normalization.
    * A variable's other collections and its regularization loss are kept, once;
      contrib dropped the former, and added the loss of each of three copies.
    * What `tf.train.init_from_checkpoint` or a warm start gives a variable, its
      centre begins with; contrib's did not, and the copy lost it in silence.

  Example:
    >>> with tf.Graph().as_default():
    ...   getter = ElasticAverageCustomGetter('/job:worker/task:0')
    ...   with tf.compat.v1.variable_scope('', custom_getter=getter):
    ...     w = tf.compat.v1.get_variable('w', [2])
    ...   [v.op.name for v in tf.compat.v1.global_variables()]
    ['global_center_variable/w']
  """

  def __init__(self, worker_device: str, *, statistics: str = 'average'):
    """Creates a getter for one graph.

    Args:
      worker_device: The device of this worker, e.g. `/job:worker/task:0`; empty
        for the one that runs the session.
      statistics: What becomes of floating point variables that are not trained:
        `'average'` or `'shared'`.

    Raises:
      TypeError: `worker_device` is not a string.
      ValueError: `statistics` is something else.
    """
    if not isinstance(worker_device, str):
      raise TypeError('`worker_device` must be a string. Received: '
                      f'{worker_device!r}. Pass e.g. "/job:worker/task:0".')
    elastic_arguments.check_choice('statistics', statistics,
                                   elastic_arguments.STATISTICS_POLICIES)
    self._worker_device = worker_device
    self._statistics = statistics
    self._pairs = {}
    self._state = set()
    self._mode = None
    self._devices = []
    self._statistics_user = None

  @property
  def worker_device(self) -> str:
    """The device that the local variables are on."""
    return self._worker_device

  @property
  def pairs(self) -> list[CenteredVariable]:
    """The averaged variables so far, in the order of their creation."""
    return list(self._pairs.values())

  def pair_of(self, local: tf.Variable):
    """Returns the `CenteredVariable` of a local variable, or None.

    Args:
      local: Any variable, found by identity.
    """
    return self._pairs.get(local.ref())

  def pairs_of(self, var_list: Iterable) -> list[CenteredVariable]:
    """Returns the pair of each variable that an optimizer is going to train.

    Args:
      var_list: Local variables, whole or partitioned.

    Raises:
      ValueError: a variable was made without this getter.
    """
    flat = [part for item in var_list for part in _parts(item)]
    unknown = [v.name for v in flat if self.pair_of(v) is None]
    if unknown:
      raise ValueError(
          'Every variable that is trained must be made with the getter that is '
          f'`ea_custom_getter`. Received: {unknown}. Make them inside `with '
          'getter.scope():` (which Keras layers and tf.Variable need; '
          '`variable_scope(custom_getter=getter)` sees `get_variable` alone), '
          'or leave them out by `var_list`.')
    return [self.pair_of(variable) for variable in flat]

  def model_pairs(self, method: str) -> list[CenteredVariable]:
    """Returns all pairs, of which there must be some.

    Args:
      method: The method of the optimizer that needs them, for the message.

    Raises:
      RuntimeError: there is none yet.
    """
    if not self._pairs:
      raise RuntimeError(
          f'ElasticAverageOptimizer.{method} was called before there is a '
          'variable with a centre. Build the model first, with the getter that '
          'is `ea_custom_getter`.')
    return self.pairs

  def state_of(self, optimizer: tf1.train.Optimizer) -> list[tf.Variable]:
    """Returns the local variables that would be saved without the getter.

    A wrapped optimizer's slots are such, its counters of one worker are not.

    Args:
      optimizer: It has created them.
    """
    return [v for v in optimizer.variables() if v.ref() in self._state]

  def statistics_of(self, user: object) -> list[CenteredVariable]:
    """Returns the averaged variables that are not trained.

    Of several optimizers that share a getter the first that asks gets them, so
    that they are averaged once.

    Args:
      user: The optimizer that asks.
    """
    self._statistics_user = self._statistics_user or user
    if self._statistics_user is not user:
      return []
    return [pair for pair in self.pairs if not pair.trainable]

  def __call__(self, getter: Callable, name: str, *args, **kwargs):
    """Gets a variable; see `custom_getter` of `tf.compat.v1.variable_scope`.

    Args:
      getter: Gets the variable otherwise.
      name: The variable's full name.
      *args: For `getter`.
      **kwargs: For `getter`.
    """
    with self.scope():
      variable = getter(name, *args, **kwargs)
    for part in _parts(variable):
      if part.ref() in self._pairs:
        inherit_slice(self._pairs[part.ref()])
    return variable

  @contextlib.contextmanager
  def scope(self) -> Iterator[None]:
    """Pairs every variable made inside it, whatever makes it."""
    if self._mode is not None:
      yield
      return
    self._devices = _tf_internals.device_functions()
    with self._in_mode('pairs'), tf.variable_creator_scope(self._create):
      yield

  @contextlib.contextmanager
  def local_state(self) -> Iterator[None]:
    """Makes every variable inside it local to the worker, without a centre.

    An optimizer's slots and step counters are such variables.
    """

    def create(next_creator, **kwargs):
      if shared_variables.is_shared():
        return next_creator(**kwargs)
      collections = kwargs.get('collections') or ()
      kwargs['collections'] = elastic_variables.localized(collections)
      with placement.only_on(self._worker_device):
        variable = next_creator(**kwargs)
      if tf1.GraphKeys.LOCAL_VARIABLES not in collections:
        self._state.add(variable.ref())
      return variable

    with self._in_mode('state'), tf.variable_creator_scope(create):
      yield

  @contextlib.contextmanager
  def _in_mode(self, mode: str) -> Iterator[None]:
    outer, self._mode = self._mode, mode
    try:
      yield
    finally:
      self._mode = outer

  def _create(self, next_creator: Callable, **kwargs):
    """A variable creator: the local copy, and its centre beside it."""
    if (self._mode != 'pairs' or _pairing.get() or
        not self._has_center(kwargs)):
      return self._create_other(next_creator, **kwargs)
    token = _pairing.set(True)
    try:
      return self._create_pair(next_creator, **kwargs)
    finally:
      _pairing.reset(token)

  def _create_pair(self, next_creator: Callable, **kwargs):
    collections = elastic_variables.localized(kwargs.get('collections'))
    with placement.only_on(self._worker_device):
      local = next_creator(**{**kwargs, 'collections': collections})
    with tf1.name_scope(None), placement.as_within(self._devices):
      center = next_creator(**{
          **kwargs, 'trainable': False,
          # Not drawn again: an initializer may be used once.
          'initial_value': local.initial_value,
          'name': f'{GLOBAL_CENTER}/{local.op.name}',
          'collections': [tf1.GraphKeys.GLOBAL_VARIABLES]})
    self._pairs[local.ref()] = CenteredVariable(
        local, center, elastic_variables.is_trainable(kwargs),
        local.initializer)
    return local

  def _create_other(self, next_creator: Callable, **kwargs):
    if tf1.GraphKeys.LOCAL_VARIABLES in (kwargs.get('collections') or ()):
      with placement.only_on(self._worker_device):
        return next_creator(**kwargs)
    # Beside a local variable, as a moving average asks to be, it would be on
    # this worker, and the others would wait for theirs for ever.
    with placement.as_within(self._devices):
      return next_creator(**kwargs)

  def _has_center(self, kwargs: dict[str, Any]) -> bool:
    if not _is_floating(kwargs):
      return False
    if elastic_variables.is_trainable(kwargs):
      return True
    collections = kwargs.get('collections') or ()
    return (self._statistics == 'average' and self._statistics_user is None and
            tf1.GraphKeys.LOCAL_VARIABLES not in collections)


def _is_floating(kwargs: dict[str, Any]) -> bool:
  """Whether a variable is going to be; a callable without a type: assumed."""
  dtype = kwargs.get('dtype')
  if dtype is None and not callable(kwargs.get('initial_value')):
    value = kwargs.get('initial_value')
    dtype = getattr(value, 'dtype', None) or np.asarray(value).dtype
  return dtype is None or tf.as_dtype(dtype).base_dtype.is_floating


def inherit_slice(pair: CenteredVariable) -> None:
  """Makes the centre of a part of a variable a part, as a Saver knows it.

  Args:
    pair: The variable; nothing happens if it is a whole one.
  """
  info = _tf_internals.save_slice_info_of(pair.local)
  if info is not None:
    _tf_internals.set_save_slice_info(
        pair.center, tf.Variable.SaveSliceInfo(
            f'{GLOBAL_CENTER}/{info.full_name}', info.full_shape,
            info.var_offset, info.var_shape))


def check_getter(getter: ElasticAverageCustomGetter) -> None:
  """Raises unless `getter` is one.

  Args:
    getter: What the user passed as `ea_custom_getter`.

  Raises:
    TypeError: it is something else.
  """
  if not isinstance(getter, ElasticAverageCustomGetter):
    raise TypeError(
        '`ea_custom_getter` must be an ElasticAverageCustomGetter. Received: '
        f'{getter!r}. Pass the getter that the model is built with.')


def _parts(variable) -> list[tf.Variable]:
  # The class of a partitioned variable has no public name; it is iterable.
  return [variable] if isinstance(variable, tf.Variable) else list(variable)
