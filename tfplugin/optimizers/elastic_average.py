# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wrapper that trains copies of a model, tied to a centre by a spring."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin import types
from tfplugin.checkpoints import local_state
from tfplugin.distribute.elastic import elastic_exchange
from tfplugin.distribute.elastic import elastic_pairs
from tfplugin.distribute.elastic import elastic_settings
from tfplugin.distribute.elastic import elastic_start
from tfplugin.distribute.elastic.values import first_values
from tfplugin.ops import elastic
from tfplugin.optimizers import elastic_custom_getter
from tfplugin.optimizers import elastic_initialization
from tfplugin.optimizers import elastic_updates
from tfplugin.optimizers import wrapper

tf1 = tf.compat.v1


class ElasticAverageOptimizer(wrapper.OptimizerWrapper):
  """Wrapper that trains a local copy and pulls it and the centre together.

  For asynchronous training on parameter servers where the network is slow, or
  gradients are noisy. A worker exchanges with the centre, both ways, once in
  `communication_period` steps. The centre is the better model: evaluate it.

    gradient = gradient of the loss + rho * (local - local_center)
    local   -= the wrapped optimizer's update, made from the gradient
    and, after every `communication_period` local steps:
    local_center = center, before it moves
    d = moving_rate * (local - center);   local -= d;   center += d

  Each worker starts from the centre whenever its local variables are
  initialised, trains its copy, and advances `global_step` when it exchanges.
  The chief saves the centre under the names of the model's variables, and its
  own optimizer state.

  Two defaults to choose with care:
    * `rho=None` means moving_rate / learning_rate, as in contrib. Such a
      penalty pulls in every step as strongly as an exchange does. For
      asynchronous training pass rho=0.0; a worker then keeps no third copy.
    * `global_step` counts exchanges: a schedule or `max_steps` is reached
      `communication_period` times later than by counting steps.
      `count_steps='local'` counts every local step of every worker.

  Momentum with `use_nesterov=True` inside gives the paper's EAMSGD. With
  `update_order='elastic_first'` the difference is taken before the gradient
  step, as in the paper. On the quadratic x * x / 2, with workers in turn and
  learning rate eta, it is stable for 0 <= moving_rate <= (4 - 2 * eta) / (4 -
  eta). In both orders the gradient is computed at the old copy.

  Variables created, besides the getter's:
    local_step: int64, [], local. This worker's steps. Each further instance or
      call of `apply_gradients` has its own, such as local_step_1.
    elastic_average/turns: int64, [], local; only with several calls that
      exchange one variable, or with a call in a branch.
    local_center_variable/<name>: like <name>, local; only if rho is not 0.
    exchange_feedback/<name>: likewise; only with `exchange_dtype='int8'`.
    elastic_overlap/...: a snapshot of each copy; only with `overlap`.
    touched_rows: bool, one for each row, local; only with `sparse_exchange`.
  Variables of the wrapped optimizer are local, and keep their names.

  Supported: any v1 optimizer; dense and sparse gradients; partitioned
  variables; float16, 32, 64; batch norm; several instances; graphs.
  Elsewhere: `ElasticAverageStrategy`.

  Differences from tf.contrib:
    * `rho=None` works with every v1 optimizer that has a learning rate, and the
      global step may be a resource variable; both raised.
    * A variable of `var_list` uses its own centre, not another variable's.
    * A variable made without the getter is an error that names it.
    * `synchronous=True` neither deadlocks nor delays a restarted worker.
    * `swapping_saver` finds the centre of a resource variable, not the copy.
    * A second instance or call in one graph works, with every period. Where
      session steps run several calls, a step exchanges each variable once.

  `tfplugin.hooks.ElasticCheckpointHook` shows a whole model_fn for a cluster.

  Example:
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> with tf.Graph().as_default():
    ...   getter = tfplugin.ElasticAverageCustomGetter('')
    ...   with tf.compat.v1.variable_scope('', custom_getter=getter):
    ...     w = tf.compat.v1.get_variable('w', initializer=4.0)
    ...   optimizer = tfplugin.ElasticAverageOptimizer(
    ...       tf.compat.v1.train.GradientDescentOptimizer(0.5), 1, getter,
    ...       communication_period=1, moving_rate=0.5, rho=0.0)
    ...   train_op = optimizer.minimize(w * w / 2)
    ...   with tf.compat.v1.Session() as session:
    ...     for op in [tf.compat.v1.global_variables_initializer(),
    ...                optimizer.local_step.initializer,
    ...                optimizer.get_init_op(task_index=0), train_op]:
    ...       session.run(op)
    ...     print(*session.run([w, getter.pairs[0].center]))
    3.0 3.0

  References:
    Zhang, Choromanska and LeCun. Deep learning with Elastic Averaging SGD.
    NeurIPS 2015. https://arxiv.org/abs/1412.6651
  """

  BETA = elastic.BETA

  def __init__(
      self,
      opt: types.Optimizer,
      num_worker: int,
      ea_custom_getter: elastic_custom_getter.ElasticAverageCustomGetter,
      communication_period: int = 10,
      moving_rate: float | None = None,
      rho: float | tf.Tensor | None = None,
      use_locking: bool = True,
      synchronous: bool = False,
      name: str = 'ElasticAverageOptimizer',
      *,
      options: elastic_settings.ElasticOptions | None = None,
      **settings: Any):
    """Wraps `opt`.

    Args:
      opt: The v1 optimizer that trains the local copies.
      num_worker: How many workers share the centre, the chief included.
      ea_custom_getter: The getter that the model's variables are made with. It
        has the `statistics`.
      communication_period: See `tfplugin.distribute.ElasticOptions`.
      moving_rate: See `ElasticOptions`.
      rho: See `ElasticOptions`, and the class for the choice.
      use_locking: Whether the centre is updated under a lock.
      synchronous: See `ElasticOptions`.
      name: Names ops.
      options: All settings, in the place of keywords. Its `num_worker` and
        `statistics` must be those of this call and the getter.
      **settings: Other fields of `ElasticOptions`; by default
        count_steps='communications'.

    Raises:
      TypeError: an argument is of the wrong type.
      ValueError: one is out of range, or `opt` has no learning rate.
      RuntimeError: not in a graph.
    """
    super().__init__(opt, use_locking, name)
    if not isinstance(ea_custom_getter,
                      elastic_custom_getter.ElasticAverageCustomGetter):
      raise TypeError(
          '`ea_custom_getter` must be an ElasticAverageCustomGetter. Received: '
          f'{ea_custom_getter!r}. Pass the getter that made the variables.')
    elastic_settings.check('num_worker', num_worker)
    own = {'num_worker': num_worker, 'statistics': ea_custom_getter.statistics}
    self._settings = elastic_settings.ElasticSettings.of(
        ElasticAverageOptimizer, options, dict(
            settings, communication_period=communication_period,
            moving_rate=moving_rate, rho=rho, synchronous=bool(synchronous)),
        count_steps='communications', **own)
    for argument, value in own.items():
      if getattr(self._settings, argument) != value:
        raise ValueError(
            f'`{argument}` must be {value!r}, as of the optimizer and its '
            f'getter. Received: {getattr(self._settings, argument)!r}. Pass '
            'the same value to both.')
    elastic_custom_getter.check_context()
    self._getter = ea_custom_getter
    self._rho = self._settings.rho_for(opt, num_worker)
    self._local_steps = [
        elastic_start.create_local_step(ea_custom_getter.worker_device)]
    self.runs, self.unaveraged = [], []

  @property
  def num_worker(self) -> int:
    """The number of workers that share the centre, the chief included."""
    return self._settings.num_worker

  @property
  def local_step(self) -> tf.Variable:
    """The steps of this worker: an `int64` scalar variable."""
    return self._local_steps[0]

  def variables(self) -> list[tf.Variable]:
    """Returns the variables of the wrapped optimizer and of the wrapper."""
    return [*super().variables(), *self._local_steps,
            *self._getter.turn_variables(), *elastic_pairs.worker_state(
                self._getter.pairs, self._rho, self._settings.exchange_dtype),
            *(v for each in (*self.runs, *self.unaveraged)
              for v in each.variables())]

  def compute_gradients(self, loss: types.LossLike,
                        var_list: Iterable | None = None,
                        *args, **kwargs) -> types.GradsAndVars:
    """Returns the gradients of the loss plus the exploration penalty.

    Args:
      loss: A scalar tensor, or a callable that returns one.
      var_list: One or a nest of local variables. None: all trainable ones.
      *args: For the wrapped optimizer.
      **kwargs: For the wrapped optimizer.

    Raises:
      ValueError: a variable was made without the getter.
    """
    elastic_custom_getter.check_context()
    pairs = self._getter.pairs_of(tf1.trainable_variables() if var_list is None
                                  else tf.nest.flatten(var_list))
    gradients = super().compute_gradients(
        loss, [pair.local for pair in pairs], *args, **kwargs)
    return [(elastic_pairs.penalized(
        gradient, variable, self._getter.pair_of(variable), self._rho),
             variable) for gradient, variable in gradients]

  def apply_gradients(self,
                      grads_and_vars: types.GradsAndVars,
                      global_step: tf.Variable | None = None,
                      name: str | None = None,
                      skip_gradients_aggregation: bool = False):
    """Makes a local step, and an exchange when it is due.

    Args:
      grads_and_vars: Pairs; variables without a gradient are not averaged.
      global_step: Advanced by each exchange, or by each step: `count_steps`.
      name: Names the returned op, which makes the step.
      skip_gradients_aggregation: For the wrapped optimizer.

    Raises:
      ValueError: no gradient, or a variable was made without the getter.
    """
    grads_and_vars = list(grads_and_vars)  # A `zip` yields them once.
    elastic_custom_getter.check_context()
    elastic_start.follow_warm_starts(self._getter.pairs)
    if self.unaveraged:  # A session may run this call by itself.
      self._local_steps.append(
          elastic_start.create_local_step(self._getter.worker_device))
    exchange = elastic_exchange.Exchange(
        self._settings, self.num_worker, self._local_steps[-1],
        self._use_locking)
    self._getter.take_turns(exchange, self._getter.pairs_of(
        [v for g, v in grads_and_vars if g is not None]))
    # The gradients include the penalty already.
    update = elastic_updates.ElasticUpdates(
        self._optimizer, self._getter, exchange, 0.0).apply_gradients(
            grads_and_vars, global_step, None, skip_gradients_aggregation)
    values = self._getter.set_values([g for g, _ in grads_and_vars], self.runs)
    self._getter.take_turns(exchange, self._getter.averaged)
    exchange.add(*self._getter.averaged)
    self.unaveraged.append(values)
    ended = exchange.end_step([update])
    self.runs += exchange.runs
    return values.after(ended, exchange.due, name or self.get_name())

  def elastic_distance(self) -> tf.Tensor:
    """Returns the L2 distance of this worker from the whole centre."""
    pairs = [pair for pair in self._getter.model_pairs('elastic_distance()')
             if pair.trainable]
    return elastic.distance([pair.local.read_value() for pair in pairs],
                            [pair.center.read_value() for pair in pairs])

  def get_init_op(
      self, task_index: int, *,
      time_limit_secs: float = elastic_start.DEFAULT_TIME_LIMIT_SECS,
  ) -> tf.Operation:
    """Returns the op that starts this worker from the centre.

    With `synchronous=True` it then waits for the others, once.

    Args:
      task_index: This worker, in [0, num_worker); the chief is one of them.
      time_limit_secs: Of the wait; `InvalidArgumentError` names absent workers.

    Raises:
      RuntimeError: the model does not exist yet.
      ValueError: `task_index` is out of range.
    """
    elastic_start.check_start(task_index, self.num_worker, time_limit_secs)
    start, barrier, _ = self.start_from_center()
    if barrier is None:
      return start
    with tf1.control_dependencies([start]):
      return tf.group(barrier.wait(task_index, time_limit_secs))

  def start_from_center(self) -> tuple:
    """Returns the op that starts the copies, a barrier or None, and pairs."""
    pairs = self._getter.model_pairs('get_init_op()')
    elastic_start.follow_warm_starts(pairs)
    for pair in pairs:
      pair.keep_local_center(self._rho)
    start = tf.group(first_values.copy_from_centers(pairs), *(
        values.start_from_centers() for values in self.unaveraged))
    return start, elastic_start.barrier_of(
        self._settings, self.num_worker, pairs[0].center.device), pairs

  def make_session_run_hook(
      self, is_chief: bool, task_index: int, *,
      time_limit_secs: float = elastic_start.DEFAULT_TIME_LIMIT_SECS,
  ) -> tf1.train.SessionRunHook:
    """Returns the hook that starts this worker and runs its exchanges.

    Args:
      is_chief: Whether all workers start from the values that it writes first.
      task_index: This worker, in [0, num_worker); the chief is one of them.
      time_limit_secs: Of the wait; the `TimeoutError` names absent workers.

    Raises:
      ValueError: An argument is out of range.
    """
    return elastic_initialization.ElasticInitialization(
        self, task_index, time_limit_secs, is_chief=is_chief)

  def swapping_saver(self, var_list: Iterable | Mapping | None = None,
                     name: str | None = 'swapping_saver',
                     **saver_kwargs) -> tf1.train.Saver:
    """Returns a Saver of the centre, under the model's own names.

    It writes a checkpoint of the model without elastic averaging, from which a
    plain Estimator can continue. It restores into the centre. Call it after
    `apply_gradients`: it saves the optimizer state of its worker too. In a
    plain session initialise local variables before you restore, not later.

    Args:
      var_list: Variables, or a dictionary of them by name; a centre is saved in
        place of its copy. None: all variables of a bare model's Saver.
      name: Names the Saver's ops.
      **saver_kwargs: For `tf.compat.v1.train.Saver`.

    Raises:
      RuntimeError: the model does not exist yet.
    """
    pairs = self._getter.model_pairs('swapping_saver()')
    if var_list is None:
      var_list = elastic_pairs.all_variables(
          pairs, self._getter.state, bool(self.unaveraged))
    return local_state.LocalStateSaver(
        elastic_pairs.swapped(pairs, var_list), self._getter.state, name=name,
        **saver_kwargs)

  def optimizer_state(self) -> dict:
    """Returns the variables of the wrapped optimizers, by checkpoint name."""
    return _tf_internals.variables_by_saved_name(self._getter.state)

  def _create_slots(self, var_list: list[tf.Variable]) -> None:
    with self._getter.local_state():
      super()._create_slots(var_list)
