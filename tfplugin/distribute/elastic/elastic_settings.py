# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The settings of elastic averaging, what they may be, and their defaults."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Iterable
from typing import Any
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.ops import elastic
from tfplugin.ops import wire_types

tf1 = tf.compat.v1

# For each argument: its type, which values it may have, both in words, and the
# remedy.
_COUNT = (numbers.Integral, lambda value: value >= 1,
          'an integer of at least 1', 'Pass e.g. 2, a number without quotes.')
_FLAG = (bool, lambda value: True, 'True or False', 'Pass a bool.')
_RULES = {
    'num_worker': _COUNT,
    'communication_period': _COUNT,
    'moving_rate': (numbers.Real, lambda value: 0 <= value <= 1,
                    'a number in [0, 1]', 'None takes the default.'),
    'rho': (numbers.Real, lambda value: 0 <= value < math.inf,
            'a number of at least 0 and finite', 'Pass 0.0 for no penalty.'),
    'task_index': (numbers.Integral, lambda value: True, 'an integer',
                   'Pass 0 for the chief.'),
    'synchronous': _FLAG,
    'sparse_exchange': _FLAG,
    'overlap': _FLAG,
    **{argument: (object, words.__contains__, f'one of {words}',
                  f'Pass {words[0]!r}.')
       for argument, words in (
           ('update_order', ('gradient_first', 'elastic_first')),
           ('count_steps', ('communications', 'local')),
           ('statistics', ('average', 'shared')),
           ('on_nonfinite', ('apply', 'drop', 'raise')))},
    'exchange_dtype': (str, wire_types.TYPES.__contains__,
                       f'one of {wire_types.TYPES}',
                       'None exchanges variables in their own types.'),
}
# Which may be None: what that means is decided later.
_OPTIONAL = ('num_worker', 'moving_rate', 'rho', 'exchange_dtype')


def check(argument: str, value: Any) -> None:
  """Raises unless a setting has a value that it may have.

  Args:
    argument: The setting's name.
    value: What the user passed.

  Raises:
    TypeError: It is of the wrong type.
    ValueError: It is out of range.
  """
  kind, is_fine, words, remedy = _RULES[argument]
  is_kind = isinstance(value, kind) and (
      kind is bool or not isinstance(value, bool))
  if not is_kind or not is_fine(value):
    raise (ValueError if is_kind else TypeError)(
        f'`{argument}` must be {words}. Received: {value!r}. {remedy}')


@dataclasses.dataclass(frozen=True)
class ElasticSettings:
  """The settings of an elastic optimizer, decorator or strategy.

  Attributes:
    num_worker: The number of workers; None until the cluster is known.
    communication_period: Local steps from one communication to the next.
    moving_rate: The share of the difference that moves, a number in [0, 1] or a
      tensor; None for the default of `ops.elastic`.
    rho: The strength of the exploration penalty, a number or a tensor; 0 for
      none, None for the default of the optimizer.
    synchronous: Whether the workers wait for each other before they start.
    update_order: `'gradient_first'` or `'elastic_first'`.
    count_steps: `'communications'` or `'local'`.
    statistics: `'average'` or `'shared'`.
    sparse_exchange: Whether to exchange only touched embedding rows.
    on_nonfinite: What becomes of gradients, and of differences from the centre,
      with a NaN or an infinity: `'apply'`, `'drop'` or `'raise'`.
    exchange_dtype: The type in which values cross the network, one of
      `wire_types.TYPES`; None: their own.
    overlap: Whether a communication runs beside the steps that follow it.

  Raises:
    TypeError: One is of the wrong type.
    ValueError: One is out of range, or does not go with another one.
  """

  num_worker: Optional[int] = None
  communication_period: int = 10
  moving_rate: Optional[elastic.Rate] = None
  rho: Optional[elastic.Rate] = 0.0
  synchronous: bool = False
  update_order: str = 'gradient_first'
  count_steps: str = 'communications'
  statistics: str = 'average'
  sparse_exchange: bool = False
  on_nonfinite: str = 'apply'
  exchange_dtype: Optional[str] = None
  overlap: bool = False

  def __post_init__(self):
    for field in dataclasses.fields(self):
      argument, value = field.name, getattr(self, field.name)
      is_tensor = (argument in ('moving_rate', 'rho') and tf.is_tensor(value))
      is_unset = argument in _OPTIONAL and value is None
      if not (is_tensor or is_unset):
        check(argument, value)
    if self.overlap:
      self._check_overlap()
    if self.sparse_exchange and (
        self.rho is None or elastic.is_penalty(self.rho)):
      raise ValueError(
          '`rho` must be 0.0 with sparse_exchange=True: a penalty pulls at all '
          f'rows, in every step. Received: {self.rho!r}. Pass 0.0.')

  def _check_overlap(self):
    for argument, value, is_fine, why, remedy in (
        ('update_order', self.update_order,
         self.update_order == 'gradient_first',
         'the gradient of a step cannot wait for a communication that ends '
         'later', "Pass 'gradient_first': with a period of 1 the difference is "
         'then taken before the gradient step, too'),
        ('sparse_exchange', self.sparse_exchange, not self.sparse_exchange,
         'a snapshot is taken of whole variables', 'Leave out one of the two'),
        ('moving_rate', self.moving_rate, not tf.is_tensor(self.moving_rate),
         'a run of its own has no feeds and no values of the step',
         'Pass a number')):
      if not is_fine:
        raise ValueError(
            f'`{argument}` must be another one with overlap=True: {why}. '
            f'Received: {value!r}. {remedy}.')

  @classmethod
  def with_counted_steps(cls, count_steps: Optional[str],
                         **settings: Any) -> ElasticSettings:
    """Returns the settings; warns if the user has not said what is counted.

    Args:
      count_steps: As the attribute; None: 'communications', with a warning
        where a global step is several local ones.
      **settings: The others.
    """
    made = cls(count_steps='communications' if count_steps is None
               else count_steps, **settings)
    period = made.communication_period
    if count_steps is None and period > 1:
      tf1.logging.warning(
          'global_step counts communications: with communication_period=%d '
          'max_steps=100,000 makes %s local steps, and whatever follows '
          "global_step stretches likewise. Pass count_steps='local' to count "
          "every step, or count_steps='communications' to keep this.", period,
          f'{100_000 * period:,}')
    return made

  @property
  def has_parts(self) -> bool:
    """Whether large variables cross the network in parts.

    A part is a message, which a step sends also if it is not due: only where
    runs of a graph communicate, unless they apply no gradients.
    """
    return self.overlap or self.communication_period == 1

  def rate(self, num_worker: int) -> elastic.Rate:
    """The moving rate among `num_worker` workers."""
    if self.moving_rate is not None:
      return self.moving_rate
    return elastic.default_moving_rate(self.communication_period,
                                       self.num_worker or num_worker)

  def rho_for(self, optimizer: tf1.train.Optimizer,
              num_worker: int) -> elastic.Rate:
    """The strength of the penalty; by default moving_rate / learning_rate.

    Args:
      optimizer: Has the learning rate; a wrapper's is that of what it wraps.
      num_worker: The number of workers, for the default moving rate.

    Raises:
      ValueError: The optimizer has no learning rate, or that is 0.
    """
    if self.rho is not None:
      return self.rho
    moving_rate = self.rate(num_worker)
    if not elastic.is_penalty(moving_rate):
      return 0.0
    rate = _tf_internals.learning_rate_of(optimizer)
    if rate is None or not elastic.is_penalty(rate):
      raise ValueError(
          '`rho` must be given where `opt` has no learning rate to derive it '
          f'from, or one of 0. Received: rho=None with {optimizer!r}. Pass 0.0 '
          'for no penalty.')
    if tf.is_tensor(rate):  # A variable counts as a tensor.
      moving_rate = tf.cast(moving_rate, rate.dtype.base_dtype)
    return moving_rate / rate

  def check_without_gradients(self) -> None:
    """Raises for what acts on gradients, where no optimizer applies any."""
    if self.rho or self.update_order != 'gradient_first' or (
        self.sparse_exchange):
      raise ValueError(
          "`rho`, `update_order='elastic_first'` and `sparse_exchange` act on "
          'the gradients that an optimizer applies. Received: a train_op of '
          "none, such as that of an optimizer whose own `apply_gradients` "
          'assigns to the variables. Leave them out, or use the base method.')

  def check_has_hooks(self, result: Any) -> None:
    """Raises for what needs a hook, where a function returns no EstimatorSpec.

    Args:
      result: What it returns.

    Raises:
      ValueError: Communications are to run beside the steps.
    """
    if self.overlap:
      raise ValueError(
          '`overlap` must be False where the function that a strategy runs '
          'returns no EstimatorSpec, whose `training_hooks` run the '
          f'communications. Received: True with {result!r}. Return an '
          'EstimatorSpec, and pass its hooks to the session.')

  def check_exchanged(self, dtypes: Iterable[tf.DType]) -> None:
    """Raises where a smaller type of the exchange makes nothing smaller.

    Args:
      dtypes: The types of the variables that are exchanged.

    Raises:
      ValueError: None of them is wider than `exchange_dtype`.
    """
    names = sorted({dtype.base_dtype.name for dtype in dtypes})
    if names and self.exchange_dtype is not None and not any(
        wire_types.is_smaller(self.exchange_dtype, tf.as_dtype(name))
        for name in names):
      raise ValueError(
          '`exchange_dtype` must be smaller than the type of a variable that '
          f'is exchanged. Received: {self.exchange_dtype!r} with variables of '
          f'{", ".join(names)}. Leave it out.')

  def check_unused(self, where: str, remedy: str) -> None:
    """Raises for a setting of the network that would do nothing.

    Args:
      where: Where that is, for the message.
      remedy: What to do, for the message.

    Raises:
      ValueError: One is set.
    """
    for argument, unused in (('exchange_dtype', None), ('overlap', False)):
      value = getattr(self, argument)
      if value is not unused:
        raise ValueError(f'`{argument}` must be {unused} {where}. '
                         f'Received: {value!r}. {remedy}.')

  def check_of_strategy(self, is_replicated: bool) -> None:
    """Raises for what an optimizer takes and a strategy does not.

    Args:
      is_replicated: Whether it is for the devices of one process.
    """
    if self.sparse_exchange and is_replicated:
      raise ValueError(
          '`sparse_exchange` must be False between the devices of one process, '
          'where no network is saved. Received: True.')
    if is_replicated:
      self.check_unused('between the devices of one process, where no network '
                        'is saved', 'Leave it out')
    for argument in ('moving_rate', 'rho'):
      value = getattr(self, argument)
      if tf.is_tensor(value) or (value is None and argument == 'rho'):
        raise TypeError(
            f'`{argument}` must be a number: a strategy is copied from graph '
            'to graph, and does not know the learning rate that a default of '
            f'`rho` could come from. Received: {value!r}. Pass its value: for '
            '`rho` 0.0 for no penalty, or `moving_rate / learning_rate`.')


def refuse_accumulators() -> None:
  """Raises if the graph gathers the gradients of several workers.

  Raises:
    RuntimeError: A `SyncReplicasOptimizer` is in it.
  """
  if not tf.executing_eagerly():
    for op in tf1.get_default_graph().get_operations():
      if _tf_internals.accumulates_gradients(op):
        refuse_synchronous(op.name)


def refuse_synchronous(received: str) -> None:
  """Raises the error about a `SyncReplicasOptimizer`.

  Args:
    received: What shows that there is one.

  Raises:
    RuntimeError: Always.
  """
  raise RuntimeError(
      '`tf.compat.v1.train.SyncReplicasOptimizer` must not be used under '
      'elastic averaging, where each worker trains its own copy: it would wait '
      f'for the gradients of others without end. Received: {received}. Leave '
      'it out; the workers exchange every `communication_period` steps.')
