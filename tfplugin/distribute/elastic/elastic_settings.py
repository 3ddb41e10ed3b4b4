# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settings of elastic averaging: checks, defaults and consequences."""

from __future__ import annotations

import dataclasses
import inspect
import math
import numbers
import sys
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import refusals
from tfplugin.distribute.sessions import membership
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
_OPTIONAL = ('num_worker', 'moving_rate', 'rho', 'count_steps',
             'exchange_dtype')


def check(argument: str, value: Any) -> None:
  """Raises a TypeError or a ValueError if a setting has a forbidden value."""
  kind, is_fine, words, remedy = _RULES[argument]
  is_kind = isinstance(value, kind) and (
      kind is bool or not isinstance(value, bool))
  if not is_kind or not is_fine(value):
    raise (ValueError if is_kind else TypeError)(
        f'`{argument}` must be {words}. Received: {value!r}. {remedy}')


@dataclasses.dataclass(
    frozen=True, **({'kw_only': True} if sys.version_info >= (3, 10) else {}))
class ElasticOptions:
  """Settings of elastic averaging, for optimizer, decorator and strategy.

  Each form takes the fields as keywords, or all of them as `options`. A value
  is checked here. Pass fields by name.

  Attributes:
    num_worker: How many workers share the centre, the chief included. None: the
      chief and workers of the cluster; where workers may join, those present.
    communication_period: Local steps from one exchange to the next.
    moving_rate: The share of the difference that moves, in [0, 1]. None:
      0.9 / communication_period / num_worker. The optimizer takes a tensor,
      too.
    rho: The strength of the exploration penalty, rho / 2 * |local - c|^2, where
      c is the centre that the worker received last. It acts on the gradients;
      the reported loss does not include it. With 0.0 no c is kept. None:
      moving_rate / learning rate, which a strategy does not know.
    synchronous: Whether the workers start together. `ElasticAverageOptimizer`
      needs its hook or `get_init_op` for that.
    update_order: `'gradient_first'`, or the paper's `'elastic_first'`, whose
      difference uses the values before the gradient step.
    count_steps: The unit of `global_step`: `'communications'` (exchanges) or
      `'local'` steps. None: exchanges, with a warning of the number of local
      steps.
    statistics: The handling of floating point variables that are not trained
      and that the step writes from data: `'average'`, or `'shared'` for one
      variable on a parameter server, which every worker updates.
    sparse_exchange: Whether a variable with sparse gradients exchanges only the
      rows that this worker's gradients touched since its last exchange. A row
      that a worker does not touch keeps its value on that worker, also while
      the centre moves, and catches up once touched. Rows that an optimizer
      moves without a gradient, as Adam does, count as not touched. A variable
      that also gets a dense gradient exchanges all rows. It needs rho=0.0.
    on_nonfinite: The policy for gradients and exchanged differences with a NaN
      or an infinity. `'apply'` uses them. `'drop'` changes neither copies nor
      centre, and the step does not count: it advances only the local
      `elastic_average/num_nonfinite`, shown as `elastic_average/nonfinite`.
      `'raise'` is an error with worker, step and variables. The devices of a
      process decide together.
    exchange_dtype: A smaller type, in which values cross the network:
      `'float16'`, `'bfloat16'` or `'int8'`; None: the type of the variable.
      docs/exchange.md has the rules.
    overlap: Whether an exchange runs beside the next steps, in a thread of the
      session. The difference then uses the copy as it was when the exchange
      began. docs/exchange.md has the rule and its bound.

  Raises:
    TypeError: A value has the wrong type.
    ValueError: A value is out of range, or excludes another.

  Example:
    >>> import tfplugin.distribute
    >>> options = tfplugin.distribute.ElasticOptions(
    ...     communication_period=4, count_steps='local')
    >>> tfplugin.distribute.ElasticAverageStrategy(options=options).num_worker
    1
  """

  num_worker: int | None = None
  communication_period: int = 10
  moving_rate: elastic.Rate | None = None
  rho: elastic.Rate | None = 0.0
  synchronous: bool = False
  update_order: str = 'gradient_first'
  count_steps: str | None = None
  statistics: str = 'average'
  sparse_exchange: bool = False
  on_nonfinite: str = 'apply'
  exchange_dtype: str | None = None
  overlap: bool = False

  def __post_init__(self):
    """Checks the values, and warns if none says how `global_step` counts."""
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
    if self.count_steps is None:
      object.__setattr__(self, 'count_steps', 'communications')
      if self.communication_period > 1:
        tf1.logging.warning(
            'global_step counts exchanges: with communication_period=%d '
            'max_steps=100,000 makes %s local steps, and schedules that follow '
            "global_step stretch likewise. Pass count_steps='local' to count "
            "every step, or count_steps='communications' to keep this.",
            self.communication_period, f'{100_000*self.communication_period:,}')

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


class ElasticSettings(ElasticOptions):
  """Options with their consequences, as the package uses them."""

  @classmethod
  def of(cls, form: Callable, options: ElasticOptions | None,
         keywords: Mapping[str, Any], **defaults: Any) -> ElasticSettings:
    """Returns the `options` of a form, or makes them from its `keywords`.

    With `options`, each of the `keywords` must be the default of `form`'s.
    `defaults` are for keywords that are left out.
    """
    fields = [field.name for field in dataclasses.fields(cls)]
    for name in keywords.keys() - fields:
      raise TypeError(f'{form.__name__} takes {", ".join(fields)}. Received: '
                      f'{name}={keywords[name]!r}. Use one of these names.')
    if options is None:
      return cls(**{**defaults, **keywords})
    if not isinstance(options, ElasticOptions):
      raise TypeError('`options` must be an ElasticOptions. Received: '
                      f'{options!r}. Pass e.g. ElasticOptions(rho=0.1).')
    parameters = inspect.signature(form).parameters
    given = [name for name, value in keywords.items()
             if name not in parameters or value is not parameters[name].default]
    if given:
      raise ValueError(
          '`options` must hold all settings of elastic averaging. Received: '
          f'`options` and {", ".join(given)}. Make them fields of `options`.')
    return cls(**vars(options))

  @property
  def has_parts(self) -> bool:
    """True if large variables are sent in parts.

    Without `overlap`, whole variables are sent: then workers that exchange at
    the same time come apart, and later take turns. With period 1 their messages
    fill the link, so that it is never idle either way.
    """
    return self.overlap or self.communication_period == 1

  @property
  def follows_workers(self) -> bool:
    """True if the rate follows the number of workers that are present."""
    return (self.moving_rate is None and self.num_worker is None and
            membership.read().is_open)

  @property
  def may_be_separate(self) -> bool:
    """True if an exchange can be a session run without values of the step."""
    return self.update_order == 'gradient_first' and not tf.is_tensor(
        self.moving_rate)

  def rate(self, num_worker: int) -> elastic.Rate:
    """Returns the moving rate: a number, or a tensor of the current graph."""
    if self.moving_rate is not None:
      return self.moving_rate
    if self.follows_workers:
      return elastic.default_moving_rate(
          self.communication_period,
          tf.cast(membership.read_present(num_worker), tf.float64))
    return elastic.default_moving_rate(self.communication_period,
                                       self.num_worker or num_worker)

  def rho_for(self, optimizer: tf1.train.Optimizer,
              num_worker: int) -> elastic.Rate:
    """Returns the strength of the penalty, by default moving_rate / rate."""
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
      # A schedule may begin or end with 0: such a step moves nothing.
      return tf.math.divide_no_nan(
          tf.cast(moving_rate, rate.dtype.base_dtype), rate)
    return moving_rate / rate

  def check_without_gradients(self) -> None:
    """Raises for settings that act on gradients; no optimizer applies any."""
    if self.rho or self.update_order != 'gradient_first' or (
        self.sparse_exchange):
      raise ValueError(
          "`rho`, `update_order='elastic_first'` and `sparse_exchange` act on "
          'the gradients that an optimizer applies. Received: a train_op '
          'without one, such as the train_op of an optimizer whose own '
          '`apply_gradients` assigns to the variables. Leave them out, or '
          'use an optimizer that does not override `apply_gradients`.')

  def warn_without_rows(self) -> None:
    """Warns if `sparse_exchange` has no effect, as no gradient is sparse."""
    if self.sparse_exchange:
      tf1.logging.warning(
          '`sparse_exchange` acts on variables with sparse gradients, such as '
          'embeddings; no gradient of this step is sparse, and whole variables '
          'are exchanged. Leave it out, or look rows up by `tf.gather` or '
          '`tf.nn.embedding_lookup`.')

  def check_has_hooks(self, result: Any) -> None:
    """Raises a ValueError for `overlap`, as `result` has no hooks."""
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
    """Raises a ValueError for a network setting that would have no effect."""
    for argument, unused in (('exchange_dtype', None), ('overlap', False)):
      value = getattr(self, argument)
      if value is not unused:
        raise ValueError(f'`{argument}` must be {unused} {where}. '
                         f'Received: {value!r}. {remedy}.')

  def check_of_strategy(self, is_replicated: bool) -> None:
    """Raises for settings that an optimizer takes and a strategy does not."""
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
  """Raises the RuntimeError about a `SyncReplicasOptimizer`, `received`."""
  refusals.refuse_synchronous(
      'under elastic averaging, where each worker trains its own copy',
      'it would wait for the gradients of others without end', received,
      'Leave it out; the workers exchange every `communication_period` steps')
