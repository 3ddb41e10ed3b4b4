# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settings of elastic averaging: their allowed values and defaults."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Iterable
from typing import Any
from typing import Optional

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute.sessions import membership
from tfplugin.distribute.sessions import present_workers
from tfplugin.ops import elastic
from tfplugin.ops import wire_types

tf1 = tf.compat.v1

# For each argument: its type, a check of its value, both in words, and the
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
# Settings that may be None, whose defaults are decided later.
_OPTIONAL = ('num_worker', 'moving_rate', 'rho', 'exchange_dtype')


def check(argument: str, value: Any) -> None:
  """Raises a TypeError or a ValueError if a setting has a forbidden value."""
  kind, is_fine, words, remedy = _RULES[argument]
  is_kind = isinstance(value, kind) and (
      kind is bool or not isinstance(value, bool))
  if not is_kind or not is_fine(value):
    raise (ValueError if is_kind else TypeError)(
        f'`{argument}` must be {words}. Received: {value!r}. {remedy}')


@dataclasses.dataclass(frozen=True)
class ElasticSettings:
  """Settings of an elastic optimizer, decorator or strategy.

  Values of a wrong type raise a TypeError. A ValueError is raised for values
  that are out of range, or that exclude each other.

  Attributes:
    num_worker: The number of workers; None until the cluster is known.
    communication_period: Local steps from one exchange to the next.
    moving_rate: The share of the difference that moves, a number in [0, 1] or a
      tensor; None: the default of `ops.elastic`.
    rho: The strength of the exploration penalty, a number or a tensor; 0: none;
      None: the default of the optimizer.
    synchronous: Whether the workers wait for each other before they start.
    sparse_exchange: Whether to exchange only touched embedding rows.
    on_nonfinite: The treatment of gradients, and of differences from the
      centre, with a NaN or an infinity.
    exchange_dtype: The type in which values cross the network; None: their own.
    overlap: Whether an exchange runs concurrently with the next steps.
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
         'the gradient of a step cannot wait for an exchange that ends '
         'later', "Pass 'gradient_first': with a period of 1 the difference is "
         'then taken before the gradient step, too'),
        ('sparse_exchange', self.sparse_exchange, not self.sparse_exchange,
         'a snapshot is taken of whole variables', 'Leave out one of the two'),
        ('moving_rate', self.moving_rate, not tf.is_tensor(self.moving_rate),
         'the exchange is a session run without feeds and values of the step',
         'Pass a number')):
      if not is_fine:
        raise ValueError(
            f'`{argument}` cannot have this value with overlap=True: {why}. '
            f'Received: {value!r}. {remedy}.')

  @classmethod
  def with_counted_steps(cls, count_steps: Optional[str],
                         **settings: Any) -> ElasticSettings:
    """Returns the settings; `count_steps` None means to count exchanges.

    None also warns, where a global step is several local ones.
    """
    made = cls(count_steps='communications' if count_steps is None
               else count_steps, **settings)
    period = made.communication_period
    if count_steps is None and period > 1:
      tf1.logging.warning(
          'global_step counts exchanges: with communication_period=%d '
          'max_steps=100,000 makes %s local steps, and schedules that follow '
          "global_step stretch likewise. Pass count_steps='local' to count "
          "every step, or count_steps='communications' to keep this.", period,
          f'{100_000 * period:,}')
    return made

  @property
  def has_parts(self) -> bool:
    """True if large variables are sent in parts.

    A part is a message, also in a step that is not due. So this is true only
    where every run of a graph exchanges, except runs that apply no gradients.
    """
    return self.overlap or self.communication_period == 1

  @property
  def follows_workers(self) -> bool:
    """Whether the moving rate follows the number of workers that are present.

    It does by default in a run that workers may join.
    """
    return (self.moving_rate is None and self.num_worker is None and
            membership.read().is_open)

  @property
  def may_be_separate(self) -> bool:
    """Whether an exchange can be a session run without values of the step."""
    return self.update_order == 'gradient_first' and not tf.is_tensor(
        self.moving_rate)

  def rate(self, num_worker: int) -> elastic.Rate:
    """Returns the moving rate among `num_worker` workers.

    It is a number, or a tensor of the current graph where it follows the number
    of workers.
    """
    if self.moving_rate is not None:
      return self.moving_rate
    if self.follows_workers:
      return elastic.default_moving_rate(
          self.communication_period,
          tf.cast(present_workers.read(num_worker), tf.float64))
    return elastic.default_moving_rate(self.communication_period,
                                       self.num_worker or num_worker)

  def rho_for(self, optimizer: tf1.train.Optimizer,
              num_worker: int) -> elastic.Rate:
    """Returns the penalty's strength; by default moving_rate / learning_rate.

    A wrapper has the learning rate of the wrapped optimizer. A ValueError is
    raised if `optimizer` has no learning rate, or 0.
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
    """Raises for settings that act on gradients; no optimizer applies any."""
    if self.rho or self.update_order != 'gradient_first' or (
        self.sparse_exchange):
      raise ValueError(
          "`rho`, `update_order='elastic_first'` and `sparse_exchange` act on "
          'the gradients that an optimizer applies. Received: a train_op '
          'without one, such as the train_op of an optimizer whose own '
          '`apply_gradients` assigns to the variables. Leave them out, or use '
          'the base method.')

  def check_has_hooks(self, result: Any) -> None:
    """Raises a ValueError for `overlap`, which needs an EstimatorSpec's hooks.

    `result` is the value that a function returned instead.
    """
    if self.overlap:
      raise ValueError(
          '`overlap` must be False where the function that a strategy runs '
          'returns no EstimatorSpec, whose `training_hooks` run the exchanges. '
          f'Received: True with {result!r}. Return an EstimatorSpec, and pass '
          'its hooks to the session.')

  def check_exchanged(self, dtypes: Iterable[tf.DType]) -> None:
    """Raises a ValueError unless `exchange_dtype` is smaller than a dtype."""
    names = sorted({dtype.base_dtype.name for dtype in dtypes})
    if names and self.exchange_dtype is not None and not any(
        wire_types.is_smaller(self.exchange_dtype, tf.as_dtype(name))
        for name in names):
      raise ValueError(
          '`exchange_dtype` must be smaller than the type of a variable that '
          f'is exchanged. Received: {self.exchange_dtype!r} with variables of '
          f'{", ".join(names)}. Leave it out.')

  def check_unused(self, where: str, remedy: str) -> None:
    """Raises a ValueError for a network setting that would have no effect.

    `where` and `remedy` are for the message.
    """
    for argument, unused in (('exchange_dtype', None), ('overlap', False)):
      value = getattr(self, argument)
      if value is not unused:
        raise ValueError(f'`{argument}` must be {unused} {where}. '
                         f'Received: {value!r}. {remedy}.')

  def check_of_strategy(self, is_replicated: bool) -> None:
    """Raises for settings that an optimizer takes and a strategy does not.

    `is_replicated` is true for the devices of one process.
    """
    if self.sparse_exchange and is_replicated:
      raise ValueError(
          '`sparse_exchange` must be False between the devices of one process, '
          'where no network is saved. Received: True. Leave it out.')
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
  """Raises a RuntimeError if the graph contains a `SyncReplicasOptimizer`."""
  if not tf.executing_eagerly():
    for op in tf1.get_default_graph().get_operations():
      if _tf_internals.accumulates_gradients(op):
        refuse_synchronous(op.name)


def refuse_synchronous(received: str) -> None:
  """Raises, always, the RuntimeError about a `SyncReplicasOptimizer`.

  `received` is the evidence of it, for the message.
  """
  raise RuntimeError(
      '`tf.compat.v1.train.SyncReplicasOptimizer` must not be used under '
      'elastic averaging, where each worker trains its own copy: it would wait '
      f'for the gradients of others without end. Received: {received}. Leave '
      'it out; the workers exchange every `communication_period` steps.')
