# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Custom getter that makes a copy on the worker and a centre on the ps."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import branching
from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_exchange
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.elastic import elastic_start
from tfplugin.distribute.elastic import elastic_variables
from tfplugin.distribute.elastic.values import unaveraged_values

tf1 = tf.compat.v1

# Old graphs and checkpoints use this name.
GLOBAL_CENTER = 'global_center_variable'


class ElasticAverageCustomGetter(elastic_variables.ElasticScope):
  """Getter that makes a model's variables local and adds their centres.

  Use it with `tf.compat.v1.train.replica_device_setter`, which puts the centres
  and the global step on parameter servers:

    with tf.compat.v1.variable_scope('', custom_getter=getter): ...model...
    with getter.scope(): ...a model of Keras layers or tf.Variable...

  A custom getter sees the variables of `get_variable` and
  `tf.compat.v1.layers`; `scope()` sees Keras layers and `tf.Variable` as well.
  A variable gets one centre, also inside both.

  Variables created, for a trainable variable `<name>` of any floating type:
    <name>: on the worker, in LOCAL_VARIABLES and TRAINABLE_VARIABLES.
    global_center_variable/<name>: where the variable itself would have been,
      in GLOBAL_VARIABLES.

  A floating point variable that is not trained, such as a moving mean, gets a
  centre, too: it is local, and takes part in each exchange. The optimizer
  averages it if the step writes it from data. With `statistics='shared'` it
  stays one variable on a parameter server.

  Every integer variable, such as the global step, stays one variable there. So
  does a variable that is made after the first `apply_gradients`, such as the
  averages of `tf.train.ExponentialMovingAverage`, as that exchange does not
  include it.

  Supported: partitioned variables, reuse, several scopes, resource and
  reference variables.

  Differences from tf.contrib:
    * The copy of the centre that the penalty needs is made by the optimizer,
      and only if there is a penalty: with rho=0 a worker keeps no third copy.
    * Keras layers and `tf.Variable` are seen, by `scope()`. contrib made no
      centre for them, and shared the model without a message.
    * Non-trainable variables of layers are accepted; contrib raised
      `argument of type 'NoneType' is not iterable` for batch normalization.
    * A variable's other collections are kept; contrib dropped them. Its
      regularization loss is added once; contrib added it for each of three
      copies.
    * A centre starts from the value of `tf.train.init_from_checkpoint` or a
      warm start; contrib's did not, and the copy lost it without a message.

  Example:
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> with tf.Graph().as_default():
    ...   getter = tfplugin.ElasticAverageCustomGetter('/job:worker/task:0')
    ...   with tf.compat.v1.variable_scope('', custom_getter=getter):
    ...     w = tf.compat.v1.get_variable('w', [2])
    ...   [v.op.name for v in tf.compat.v1.global_variables()]
    ['global_center_variable/w']
  """

  _rule = 'with the getter that is `ea_custom_getter`'
  _remedy = ('Make them inside `with getter.scope():` (which Keras layers and '
             'tf.Variable need; `variable_scope(custom_getter=getter)` sees '
             '`get_variable` alone)')

  def __init__(self, worker_device: str, *, statistics: str = 'average'):
    """Creates a getter for one graph.

    Args:
      worker_device: The device of this worker, e.g. `/job:worker/task:0`; empty
        for the one that runs the session.
      statistics: The handling of floating point variables that are not trained:
        `'average'` or `'shared'`.

    Raises:
      TypeError: `worker_device` is not a string.
      ValueError: `statistics` is something else.
    """
    if not isinstance(worker_device, str):
      raise TypeError('`worker_device` must be a string. Received: '
                      f'{worker_device!r}. Pass e.g. "/job:worker/task:0".')
    elastic_settings.check('statistics', statistics)
    super().__init__(worker_device, statistics)
    self.averaged: list[elastic_pairs.Pair] = []  # Of those not trained.
    # The calls that move each variable, its turn, and the turns of each call.
    self._calls = collections.defaultdict(tuple)
    self._turn_of, self._turns = {}, collections.defaultdict(list)
    self._made, self._values, self._seen = [], [], {}
    self._can_make_again: dict[elastic_exchange.Exchange, bool] = {}

  def model_pairs(self, method: str) -> list[elastic_pairs.Pair]:
    """Returns all copies with their centres, of which there must be some.

    Call it after the model is built: it completes the exchanges.

    Args:
      method: The method of the optimizer that needs them, for the message.

    Raises:
      RuntimeError: No variable with a centre exists yet, or an exchange cannot
        be completed.
    """
    if not self._pairs:
      raise RuntimeError(
          f'ElasticAverageOptimizer.{method} was called before there is a '
          'variable with a centre. Build the model first, with the getter that '
          'is `ea_custom_getter`.')
    for pair in self.pairs:
      # `scope()` sees parts of variables before they are marked so.
      inherit_slice(pair)
    self._exchange_written()
    return self.pairs

  def set_values(self, gradients: Sequence[Any],
                 runs: list) -> unaveraged_values.SetValues:
    """Returns the exchange of untrained variables without an average.

    Once averaged, a variable is averaged by each call of an optimizer. An
    earlier call, which did not see the data, leaves it out.

    Args:
      gradients: The gradients that the call applies.
      runs: Gets the exchange if it is a session run of its own.
    """
    found = unaveraged_values.of_gradients(
        [pair for pair in self.pairs if pair not in self.averaged], gradients)
    self.averaged += [pair for pair in self.pairs if not (
        pair.trainable or pair in self.averaged or pair in found.pairs)]
    for values in self._values:
      values.leave_out(self.averaged)
    self._values.append(unaveraged_values.SetValues(
        found, self.worker_device, runs, self._seen))
    return self._values[-1]

  def take_turns(self, exchange: elastic_exchange.Exchange,
                 moved: Sequence[elastic_pairs.Pair]) -> None:
    """Makes the first exchange of a session run that is due move a variable.

    So an earlier call needs a turn, too, and its exchange is made again. A call
    in a branch has its turns from the start, as it cannot be made again.

    Args:
      exchange: That of a call.
      moved: Variables that the call trains or averages.
    """
    is_inside = tf.inside_function() or (
        branching.current_branch()[1] is not None)
    is_in_loop = _tf_internals.is_in_loop(exchange.steps_before.op)
    self._can_make_again[exchange] = not (is_inside or is_in_loop)
    if is_in_loop:
      return
    groups, again = collections.defaultdict(list), {}
    for pair in moved:
      groups[self._calls[pair], self._turn_of.get(pair)].append(pair)
    for (calls, turn), pairs in groups.items():
      self._calls.update(dict.fromkeys(pairs, (*calls, exchange)))
      if turn is not None and turn.is_fixed:
        self._turns[exchange] += [turn] if turn.pairs <= set(moved) else []
      elif calls or is_inside:
        again.update(dict.fromkeys(calls))
        self._share(pairs, (*calls, exchange), is_inside)
    for call in again:
      call.make_again(elastic_pairs.StepTurns(self._turns[call]))
    exchange.turns = elastic_pairs.StepTurns(self._turns[exchange])

  def _share(self, pairs, calls, is_fixed):
    """Gives `pairs` a turn of their own, for the exchanges of `calls`."""
    new = elastic_pairs.Turn(pairs, self.worker_device, is_fixed)
    self._made.append(new.variable)
    for pair in pairs:
      if pair in self._turn_of:
        self._turn_of[pair].pairs.remove(pair)
      self._turn_of[pair] = new
    for call in calls:
      self._turns[call].append(new)

  def _exchange_written(self) -> None:
    """Makes the last call exchange trainable variables that no call trains.

    An op writes them: an optimizer without the wrapper, or an assignment. Any
    other one still equals its centre.
    """
    calls = list(self._can_make_again)
    exchanged = {pair for call in calls for pair in call.pairs}
    written = unaveraged_values.written_by_program(
        pair for pair in self.pairs
        if pair.trainable and pair not in exchanged)
    pairs = [*written.computed, *written.set_by_hand]
    last = next((call for call in reversed(calls)
                 if self._can_make_again[call]), None)
    if not pairs or not calls:
      return
    if last is not None:
      self._calls.update(dict.fromkeys(pairs, (last,)))
      last.make_again(last.turns, *pairs)
      return
    message = (
        'Every trainable variable that the program writes must be trained by an'
        ' ElasticAverageOptimizer, if that is applied only inside `tf.cond` or '
        f'a loop. Received: {[pair.local.name for pair in pairs]}, which no '
        'exchange includes. Pass `trainable=False` for variables that no '
        'gradient trains, train the others with the ElasticAverageOptimizer, '
        'or apply it outside of the branch or loop.')
    if written.computed:
      raise RuntimeError(message)
    tf1.logging.warning('%s', message)

  def turn_variables(self) -> list[tf.Variable]:
    """Returns the variables for turns of exchanges, as far as they exist."""
    return list(self._made)

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
    for part in _tf_internals.parts_of(variable):
      if self.pair_of(part) is not None:
        inherit_slice(self.pair_of(part))
    return variable

  def _create_pair(self, next_creator: Callable, **kwargs: Any) -> tf.Variable:
    value = kwargs.get('initial_value')
    if kwargs.get('dtype') is None and callable(value):
      with tf.init_scope(), placement.device_override(self.worker_device):
        kwargs['initial_value'] = value = tf.convert_to_tensor(value())
      if not value.dtype.is_floating:  # Shared, as every integer variable.
        with placement.outer_devices(self._devices):
          return next_creator(**kwargs)
    with placement.device_override(self.worker_device):
      local = next_creator(**elastic_variables.copy_arguments(kwargs))
    with tf1.name_scope(None), placement.outer_devices(self._devices):
      center = elastic_variables.center_of(next_creator, {
          # Not drawn again: an initializer may be used once.
          **kwargs, 'initial_value': local.initial_value,
          'name': f'{GLOBAL_CENTER}/{local.op.name}'})
    pair = self._pairs[local.ref()] = elastic_pairs.Pair(
        (local,), center, local.trainable, initializer=local.initializer)
    elastic_start.start_from_center(pair)
    return local


def inherit_slice(pair: elastic_pairs.Pair) -> None:
  """Marks the centre of a variable's part as a part, as a Saver needs it."""
  info = _tf_internals.save_slice_info_of(pair.local)
  if info is not None:
    _tf_internals.set_save_slice_info(
        pair.center, tf.Variable.SaveSliceInfo(
            f'{GLOBAL_CENTER}/{info.full_name}', info.full_shape,
            info.var_offset, info.var_shape))


def check_context() -> None:
  """Raises RuntimeError unless ops are added to a graph without a strategy.

  Ops of a tf.function that eager code traces are refused, too.
  """
  is_eager = tf1.executing_eagerly_outside_functions()
  if is_eager or tf.distribute.has_strategy():
    where = 'eager execution or tf.function' if is_eager else 'a strategy'
    raise RuntimeError(
        'ElasticAverageOptimizer works in a graph without a strategy. '
        f'Received: a call in {where}. Use '
        '`tfplugin.distribute.ElasticAverageStrategy` there, with '
        'the bare optimizer.')
