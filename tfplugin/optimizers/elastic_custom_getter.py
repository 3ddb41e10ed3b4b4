# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gives each model variable a copy on the worker and a centre on the ps."""

from __future__ import annotations

from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import placement
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import elastic_scope
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.elastic import elastic_variables

tf1 = tf.compat.v1

# Old graphs and checkpoints hold this name.
GLOBAL_CENTER = 'global_center_variable'


class ElasticAverageCustomGetter(elastic_scope.ElasticScope):
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

  _rule = 'with the getter that is `ea_custom_getter`'
  _remedy = ('Make them inside `with getter.scope():` (which Keras layers and '
             'tf.Variable need; `variable_scope(custom_getter=getter)` sees '
             '`get_variable` alone)')

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
    elastic_settings.check('statistics', statistics)
    super().__init__(worker_device, statistics)
    self._statistics_user = None

  def model_pairs(self, method: str) -> list[elastic_pairs.Pair]:
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

  def statistics_of(self, user: object) -> list[elastic_pairs.Pair]:
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
    for part in _tf_internals.parts_of(variable):
      if self.pair_of(part) is not None:
        inherit_slice(self.pair_of(part))
    return variable

  def _create_pair(self, next_creator: Callable, **kwargs: Any) -> tf.Variable:
    with placement.only_on(self.worker_device):
      local = next_creator(**elastic_variables.copy_arguments(kwargs))
    with tf1.name_scope(None), placement.as_within(self._devices):
      center = elastic_variables.center_of(next_creator, {
          # Not drawn again: an initializer may be used once.
          **kwargs, 'initial_value': local.initial_value,
          'name': f'{GLOBAL_CENTER}/{local.op.name}'})
    self._pairs[local.ref()] = elastic_pairs.Pair(
        (local,), center, local.trainable, initializer=local.initializer)
    return local


def inherit_slice(pair: elastic_pairs.Pair) -> None:
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


def check_context() -> None:
  """Raises unless ops go, at the outermost, into a graph without strategy.

  Raises:
    RuntimeError: They are executed, traced for a tf.function or replicated.
  """
  is_eager = tf1.executing_eagerly_outside_functions()
  if is_eager or tf.distribute.has_strategy():
    where = 'eager execution or tf.function' if is_eager else 'a strategy'
    raise RuntimeError(
        'ElasticAverageOptimizer works in a graph without a strategy. '
        f'Received: a call in {where}. Use '
        '`tfplugin.distribute.ElasticAverageStrategy` there, with '
        'the bare optimizer.')
