# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The only place where tfplugin uses names that TensorFlow keeps private.

Each function says what it reaches and why no public API serves.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import threading
import weakref
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Callable
from typing import Optional

import tensorflow as tf

# Values of all replicas as one; how Estimator's loss is scaled.
from tensorflow.python.distribute import distribute_utils

# Runs a function once per replica, each in its thread, up to each `merge_call`.
from tensorflow.python.distribute import mirrored_run

# A variable in parts of the parameter server strategy of v2; see `parts_of`.
from tensorflow.python.distribute import sharded_variable

# The variables of several devices, and how they are saved.
from tensorflow.python.distribute import values

# The public strategies cannot be given an extended class.
from tensorflow.python.distribute.collective_all_reduce_strategy import (
  CollectiveAllReduceExtended as CollectiveAllReduceExtended,
)
from tensorflow.python.distribute.mirrored_strategy import (
  MirroredExtended as MirroredExtended,
)

# The public strategies cannot be given an extended class, and no public class
# implements between-graph parameter servers.
from tensorflow.python.distribute.parameter_server_strategy import (
  ParameterServerStrategyExtended as ParameterServerStrategyExtended,
)

# The variable of a strategy that keeps one copy for all replicas.
from tensorflow.python.distribute.ps_values import (
  AggregatingVariable as AggregatingVariable,
)

# What gradient tapes know; see `record_view`.
from tensorflow.python.eager import record
from tensorflow.python.eager import tape

# A `tf.cond` branch of control flow v2 is built in one.
from tensorflow.python.framework import func_graph

# `tf.compat.v1.colocate_with` warns and takes no distributed variable.
from tensorflow.python.framework import ops

# Whether ops are compiled; see `is_compiled`.
from tensorflow.python.ops import control_flow_util

# The store of `get_variable` and its key; see `copy_of_variable_store`.
from tensorflow.python.ops import variable_scope

# `tf.Variable(...)` runs the variable creators again; a creator that returns
# a variable of its own kind needs the class itself.
from tensorflow.python.ops.resource_variable_ops import (
  ResourceVariable as ResourceVariable,
)

# How many TPU shards are being built; see `number_of_tpu_shards`.
from tensorflow.python.tpu import tpu_function

# What `Saver` and `Checkpoint` save a variable by.
from tensorflow.python.training.saving import saveable_object

tf1 = tf.compat.v1

# A variable with a component per device, which optimizers know how to update.
MirroredVariable = values.MirroredVariable
# One with a component per device that are reduced where it is read as a whole.
SyncOnReadVariable = values.SyncOnReadVariable
call_for_each_replica = mirrored_run.call_for_each_replica
# A replica context that pauses the replica's thread in `merge_call`; the public
# API gives no way to run something around the pause.
MirroredReplicaContext = mirrored_run._MirroredReplicaContext
# Makes what every replica passes to `merge_call` one structure.
regroup = distribute_utils.regroup
# The reverse: what of a structure belongs to one replica.
select_replica = distribute_utils.select_replica


def create_optimizer_state(optimizer: tf1.train.Optimizer,
                           var_list: Sequence[tf.Variable]) -> None:
  """Creates every slot and non-slot variable `optimizer` keeps for `var_list`.

  The public API creates them inside `apply_gradients` only. Inside a `tf.cond`
  that is too late: the variables would be named after the branch.

  Args:
    optimizer: A v1 optimizer, not a wrapper.
    var_list: The variables that it is going to update.
  """
  with tf.init_scope():
    optimizer._create_slots(var_list)


def learning_rate_of(optimizer: tf1.train.Optimizer):
  """Returns what `optimizer` was given as learning rate, or None.

  No v1 optimizer has a public attribute for it: Adam and AdamW keep it in
  `_lr`, the others in `_learning_rate`, and wrappers keep what they wrap in
  `_optimizer` or `_opt`.

  Args:
    optimizer: A v1 optimizer; a wrapper's is that of what it wraps.

  Returns:
    A number, a tensor or the value of the callable that was passed; None where
    the optimizer keeps no learning rate under either name.
  """
  for attribute in ('_lr', '_learning_rate'):
    rate = getattr(optimizer, attribute, None)
    if rate is not None:
      return rate() if callable(rate) else rate
  for attribute in ('_optimizer', '_opt'):
    inner = getattr(optimizer, attribute, None)
    if isinstance(inner, tf1.train.Optimizer):
      return learning_rate_of(inner)
  return None


def initialize_like(variable: tf.Variable, handle: tf.Tensor, initializer,
                    ) -> None:
  """Makes `variable` start from the value that `initializer` assigns.

  A warm start replaces a variable's initialiser through a private attribute;
  where one variable stands in for another, it must reach the other.

  Args:
    variable: The variable to initialise.
    handle: The handle that `initializer` may assign to in its place.
    initializer: The assignment that TensorFlow made.
  """
  assignment = getattr(initializer, 'op', initializer)
  if assignment.inputs[0] is handle:
    with tf1.device(variable.device):
      assignment = tf.raw_ops.AssignVariableOp(
          resource=variable.handle, value=assignment.inputs[1])
  variable._initializer_op = assignment


def graph_element(variable: tf.Variable) -> tf.Tensor:
  """The tensor that a fetch or a Saver takes for `variable`.

  `session.run(v)` and `tf.compat.v1.train.Saver` look it up privately.

  Args:
    variable: A variable made in a graph.
  """
  return variable._graph_element


def set_save_slice_info(variable: tf.Variable, save_slice_info) -> None:
  """Marks `variable` as a slice of a partitioned variable, for the Saver.

  `get_variable` does so privately, with the variable that it returned.

  Args:
    variable: A part of a partitioned variable.
    save_slice_info: A `tf.Variable.SaveSliceInfo`.
  """
  variable._set_save_slice_info(save_slice_info)


def save_slice_info_of(variable: tf.Variable):
  """Returns the `SaveSliceInfo` of a part, or None for a whole variable.

  `tf.Variable` has a private getter only.

  Args:
    variable: A variable, perhaps a part of a partitioned one.
  """
  return variable._get_save_slice_info()


def variable_view(variable: tf.Variable, handle: tf.Tensor) -> tf.Variable:
  """Returns `variable` as it looks through another tensor of its handle.

  Every read of the view goes through `handle`, so that a gradient with respect
  to the variable passes there. No public API makes a variable from a handle.

  Args:
    variable: A resource variable.
    handle: An identity of its handle.
  """
  view = object.__new__(type(variable))
  view.__dict__.update(variable.__dict__)
  view._handle = handle
  # A cached value was read through the original handle.
  view._cached_value = None
  return view


def record_view(variable: tf.Variable, view: tf.Variable,
                gradient: Callable) -> None:
  """Tells gradient tapes that record that a view stands for its variable.

  A tape knows the ops that were made while it recorded; the view's handle is
  older. No public API records an op of one's own.

  Args:
    variable: A resource variable.
    view: What `variable_view` made of it.
    gradient: Returns the gradient of the variable, given that of the view.
  """
  if record.could_possibly_record():
    tape.variable_accessed(variable)
    record.record_operation(
        'VariableView', [view.handle], [variable.handle],
        lambda *gradients: [gradient(*gradients)])


def branch_or_loop() -> Optional[object]:
  """Returns the `tf.cond` or `tf.while_loop` of control flow v1 around here.

  No public API tells.
  """
  context = tf1.get_default_graph()._get_control_flow_context()
  while context is not None and not (
      context.IsCondContext() or context.IsWhileContext()):
    context = context.outer_context
  return context


def copy_of_variable_store() -> Sequence[object]:
  """Returns a list of one: a copy of the graph's store of `get_variable`.

  The store has no public handle; with a copy of its own, each tower may create
  the variables that another tower has created already.
  """
  store = variable_scope._get_default_variable_store()
  new = variable_scope._VariableStore()
  new._vars.update(store._vars)
  new._partitioned_vars.update(store._partitioned_vars)
  return [new]


VARIABLE_STORE_KEY = variable_scope._VARSTORE_KEY


def redirect_input(op: tf.Operation, index: int, tensor: tf.Tensor) -> None:
  """Makes input `index` of `op` read `tensor`.

  Public TensorFlow graphs are append-only.

  Args:
    op: An operation of a graph that has not run yet.
    index: Which input.
    tensor: What it reads from now on; same dtype and a compatible shape.
  """
  op._update_input(index, tensor)


def add_control_inputs(op: tf.Operation, inputs: Sequence[tf.Operation],
                       ) -> None:
  """Makes `op` wait for `inputs`; public TensorFlow graphs are append-only."""
  op._add_control_inputs(inputs)


@contextlib.contextmanager
def private_train_ops() -> Iterator[None]:
  """Keeps what a `tf.cond` branch adds to TRAIN_OP inside the branch.

  `Optimizer.apply_gradients` adds its op to that collection, and the graph of a
  control-flow-v2 branch shares its collections with the graph around it. The op
  of a branch has no meaning there: `import_meta_graph` of an export fails on
  it. No public API gives a branch graph its own list. With control flow v1 the
  op belongs to the graph itself, and nothing is done.
  """
  graph = tf1.get_default_graph()
  if isinstance(graph, func_graph.FuncGraph):
    key = tf1.GraphKeys.TRAIN_OP
    graph._collections = {
        **graph._collections, key: list(graph._collections.get(key, ()))}
  yield


@contextlib.contextmanager
def private_variables() -> Iterator[None]:
  """Keeps variables that are made inside out of the graph's collections.

  `tf.Variable` puts what it makes among the global and the trainable ones, and
  unlike `get_variable` has no argument against it. A copy of a variable on
  another device is neither saved nor trained by itself; no public API makes one
  in a graph. The collections of a user's graph are as before, afterwards.
  """
  with tf.init_scope():
    graph = tf1.get_default_graph()
  collections = graph._collections
  kept = {key: collections.get(key, []) for key in (
      tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.TRAINABLE_VARIABLES)}
  collections.update((key, list(variables)) for key, variables in kept.items())
  try:
    yield
  finally:
    collections.update(kept)


def colocate_with(variable: tf.Variable):
  """Places ops on the device of `variable`, in a graph and in eager execution.

  The public `tf.compat.v1.colocate_with` logs a deprecation warning that the
  user could do nothing about, and `tf.device(variable.device)` would count as a
  placement in `replica_device_setter`'s round robin.

  Args:
    variable: The variable to sit next to.
  """
  return ops.colocate_with(variable)


def order_before_variable_reads(operation: tf.Operation,
                                targets: Sequence[tf.Tensor],
                                exclude: Sequence[tf.Operation] = ()) -> None:
  """Makes every read of a variable that `targets` need wait for `operation`.

  Every op upstream of `targets` that consumes the handle (or the ref) of a
  variable gets a control dependency on `operation`. The public
  `control_dependencies` acts on new ops only; the model is already built.

  Args:
    operation: An op without inputs from the model.
    targets: Tensors of the same graph; other graphs' tensors are skipped.
    exclude: Variables' own ops whose consumers are left alone.
  """
  excluded = {*exclude, operation}
  pending = [t.op for t in targets if t.graph is operation.graph]
  seen = set(pending)
  while pending:
    consumer = pending.pop()
    sources = [i.op for i in consumer.inputs]
    if consumer not in excluded and any(
        _is_variable(s) and s not in excluded for s in sources):
      consumer._add_control_input(operation)
    for source in (*sources, *consumer.control_inputs):
      if source not in seen and source is not operation:
        seen.add(source)
        pending.append(source)


def _is_variable(op: tf.Operation) -> bool:
  """Whether `op` yields a variable's handle or ref, captured ones included."""
  if op.type in ('VarHandleOp', 'VariableV2', 'Variable'):
    return True
  if op.type != 'Placeholder' or op.outputs[0].dtype != tf.resource:
    return False
  handle_data = getattr(op.outputs[0], '_handle_data', None)
  return bool(handle_data and handle_data.is_set and
              handle_data.shape_and_type)


def number_of_tpu_shards() -> Optional[int]:
  """The number of shards of the `tpu_shard_context` around the call, or None.

  The context itself is public as `tf.compat.v1.tpu.shard` only, which offers no
  way to ask for it.
  """
  return tpu_function.get_tpu_context().number_of_shards


def strategy_divides_loss() -> bool:
  """Whether `compute_gradients` divides the loss by the number of replicas.

  v1 optimizers do so in a strategy under an Estimator, unless the last loss
  that was built was a sum. The rule is in a private function of theirs.
  """
  return (distribute_utils.get_loss_reduction() ==
          tf.distribute.ReduceOp.MEAN)


def distributed_apply(optimizer: tf1.train.Optimizer, strategy,
                      grads_and_vars: Sequence, global_step, name):
  """`optimizer.apply_gradients` for a cross-replica context.

  The public method refuses that context and names this private one.

  Args:
    optimizer: A v1 optimizer, not a wrapper.
    strategy: The strategy, or what stands in for it.
    grads_and_vars: Pairs of a per-replica gradient and a variable.
    global_step: Incremented by 1, or None.
    name: Of the returned op, or None.
  """
  return optimizer._distributed_apply(
      strategy, grads_and_vars, global_step, name)


def implements_updates(optimizer: tf1.train.Optimizer) -> bool:
  """Whether `optimizer` has the per-variable updates of the v1 protocol.

  They are the documented way to write an optimizer, under private names.

  Args:
    optimizer: A v1 optimizer.
  """
  base = tf1.train.Optimizer
  return (type(optimizer)._apply_dense is not base._apply_dense or
          type(optimizer)._resource_apply_dense is not
          base._resource_apply_dense)


def parts_of(variable) -> list:
  """Returns what an optimizer sees of what a strategy made: its variables.

  Args:
    variable: A variable, or the sharded one of a parameter server strategy,
      which is no `tf.Variable`; no public API tells the two apart.
  """
  sharded = isinstance(variable, sharded_variable.ShardedVariableMixin)
  return list(variable.variables) if sharded else [variable]


def split_of(variable: tf.Variable):
  """Returns (whole, axes split) of a partitioned variable's part, or None.

  The first is the same for all parts, and can be a key. A part carries both in
  private attributes; the partitioned variable, which has them publicly, cannot
  be found from a part.

  Args:
    variable: Any variable.
  """
  # A weak reference; names of what is made eagerly need not be unique.
  whole = getattr(variable, '_sharded_container', lambda: None)()
  if whole is not None:
    return id(whole), (0,)
  variable = getattr(variable, '_primary', variable)
  info = getattr(variable, '_save_slice_info', None)
  if info is None:
    return None
  axes = tuple(axis for axis, (full, part) in enumerate(
      zip(info.full_shape, info.var_shape)) if full != part)
  return info.full_name, axes


def strategy_with_mixins(strategy, strategy_mixin: type, extended_mixin: type):
  """Returns a strategy like `strategy` whose methods pass two mixins first.

  A strategy's behaviour is in the class of its private `_extended`, for which
  no public API takes a substitute. The new class keeps the name of the old one,
  by which Estimator recognises some strategies.

  Args:
    strategy: Any strategy; it is not changed.
    strategy_mixin: Goes in front of its class.
    extended_mixin: Goes in front of the class of its `extended`.
  """
  def renew(instance, mixin):
    cls = type(instance)
    new = object.__new__(type(cls.__name__, (mixin, cls), {}))
    new.__dict__.update(instance.__dict__)
    return new

  result = renew(strategy, strategy_mixin)
  result._extended = renew(strategy.extended, extended_mixin)
  result._extended._container_strategy_weakref = weakref.ref(result)
  return result


def is_distributed_variable(value: object) -> bool:
  """Whether `value` is a variable of a strategy; its class is private.

  Args:
    value: A destination of a reduction.
  """
  return distribute_utils.is_distributed_variable(value)


def is_loss_scaled() -> bool:
  """Whether `compute_gradients` has divided the last loss by the replicas.

  v1 optimizers note it on the graph; there is no public way to ask.
  """
  return getattr(tf1.get_default_graph(), '_is_loss_scaled_by_optimizer', False)


def device_functions() -> list:
  """Returns the device functions around here, from the outermost in.

  A thread that builds into the same graph starts without them under v2
  behaviour; no public API lists them.
  """
  return tf1.get_default_graph()._device_functions_outer_to_inner


class CopiesSaveable(saveable_object.SaveableObject):
  """Saves one variable, and restores it into several.

  A distributed variable tells a checkpoint how by an object of a class that is
  not public.
  """

  def __init__(self, copies: Sequence[tf.Variable], primary: tf.Variable,
               name: str):
    """Takes the variables.

    Args:
      copies: What is restored.
      primary: What is saved.
      name: The key in the checkpoint.
    """
    self._copies = copies
    spec = saveable_object.SaveSpec(
        primary.read_value, '', name, dtype=primary.dtype,
        device=primary.device)
    super().__init__(primary.read_value, [spec], name)

  def restore(self, restored_tensors, restored_shapes):
    """Returns an op that assigns the restored value to every variable."""
    del restored_shapes
    restored, = restored_tensors
    return tf.group(*[v.assign(restored, read_value=False)
                      for v in self._copies])


def python_function_of(fn):
  """The Python function inside a `tf.function`; `fn` itself if it is none.

  A strategy would otherwise build it apart from what comes after it.
  """
  return getattr(fn, 'python_function', fn)


def copy_of_replica_context(context: tf.distribute.ReplicaContext,
                            ) -> tf.distribute.ReplicaContext:
  """Returns a replica context of the same class and replica.

  The public constructors of its subclasses differ, and a context refers to
  itself in a private field, which a plain copy would leave behind.

  Args:
    context: The current replica context.
  """
  copied = copy.copy(context)
  copied._thread_context = type(context._thread_context)(copied)
  return copied


def wrapped_optimizer(optimizer: tf1.train.Optimizer):
  """Returns the optimizer that another one holds, or None.

  The wrappers of TensorFlow and those of this project keep it in private
  fields; there is no public accessor.

  Args:
    optimizer: Any v1 optimizer.
  """
  for field in ('_optimizer', '_opt'):
    inner = getattr(optimizer, field, None)
    if isinstance(inner, tf1.train.Optimizer):
      return inner
  return None


def initialize_from(variable: tf.Variable, initializer) -> None:
  """Makes `variable` start from the value that `initializer` assigns.

  As a warm start does, which replaces the initialiser of a variable through a
  private attribute: there is no public way to.

  Args:
    variable: A variable made in a graph that is not finalized.
    initializer: The assignment that initialises another variable.
  """
  value = getattr(initializer, 'op', initializer).inputs[1]
  with tf1.device(variable.device), tf1.control_dependencies(None):
    variable._initializer_op = variable.assign(value, read_value=False)


def arguments_of_saver(saver: tf1.train.Saver) -> tuple:
  """Returns the `var_list` of a Saver and its other arguments.

  To make one like it for other variables; a Saver keeps them privately.

  Args:
    saver: A Saver of variables, built or not.
  """
  names = ('reshape', 'sharded', 'max_to_keep', 'keep_checkpoint_every_n_hours',
           'name', 'restore_sequentially', 'allow_empty', 'write_version',
           'pad_step_number', 'save_relative_paths', 'filename')
  return saver._var_list, {name: getattr(saver, '_' + name) for name in names}


def is_compiled() -> bool:
  """Whether ops made now are compiled by XLA: a TPU, or `jit_compile=True`.

  No public function tells. XLA has no kernel for some ops on variables.
  """
  return bool(control_flow_util.GraphOrParentsInXlaContext(
      tf1.get_default_graph()))


# Held while methods of a class of Keras are replaced.
_KERAS_LOCK = threading.RLock()


@contextlib.contextmanager
def keras_means_of_losses(applies: Callable[[], bool]) -> Iterator[None]:
  """Lets Keras losses be means where there is a strategy.

  Inside any strategy a `tf.keras.losses.Loss` refuses its default reduction,
  since most strategies would add the means of the replicas up. A private method
  decides, which is replaced for a while; no argument of a loss says so.

  Args:
    applies: Whether the current thread is to use it.
  """
  base, reduction = tf.keras.losses.Loss, tf.keras.losses.Reduction
  decide = base._get_reduction

  def decide_with(loss):
    if not applies():
      return decide(loss)
    return (reduction.SUM_OVER_BATCH_SIZE if loss.reduction == reduction.AUTO
            else loss.reduction)

  with _KERAS_LOCK:
    base._get_reduction = decide_with
    try:
      yield
    finally:
      base._get_reduction = decide


@contextlib.contextmanager
def batch_norm_moments(moments: Callable, applies: Callable[[], bool],
                       ) -> Iterator[None]:
  """Lets batch normalisation in training use the moments of `moments`.

  A layer takes them from a private method, or from a fused kernel, which knows
  of no other rows than its own. Only some classes have an argument to change
  that, and a model that is to stay as it is does not use it. So the methods of
  the base class are replaced for a while, for all threads; hence the lock, and
  `applies`.

  Args:
    moments: Takes the inputs, the axes to reduce, whether to keep them, and a
      mask or None; returns mean, variance and the number of elements.
    applies: Whether the current thread is to use it.
  """
  # Of all batch normalisation of Keras and of `tf.layers`.
  base = tf.keras.layers.BatchNormalization.__base__
  calculate, fused = base._calculate_mean_and_var, base._fused_batch_norm

  def calculate_with(layer, inputs, reduction_axes, keep_dims, mask=None):
    if not applies():
      return calculate(layer, inputs, reduction_axes, keep_dims, mask)
    if layer.virtual_batch_size is not None:
      raise ValueError(
          '`virtual_batch_size` must not be set where batch normalisation '
          'takes its moments from the whole batch. Received: '
          f'{layer.virtual_batch_size} in {layer.name!r}. Leave out one of '
          'the two.')
    return moments(inputs, reduction_axes, keep_dims, mask)[:2]

  def fused_with(layer, inputs, mask, training):
    if not applies() or tf.get_static_value(training) in (0, False):
      return fused(layer, inputs, mask, training)
    return _batch_norm_as_if_fused(layer, inputs, training, moments)

  with _KERAS_LOCK:
    base._calculate_mean_and_var = calculate_with
    base._fused_batch_norm = fused_with
    try:
      yield
    finally:
      base._calculate_mean_and_var = calculate
      base._fused_batch_norm = fused


def _batch_norm_as_if_fused(layer, inputs: tf.Tensor, training,
                            moments: Callable) -> tf.Tensor:
  """Does what the fused kernel does, with the moments of `moments`.

  Other than without a fused kernel, the moving variance is unbiased.
  """
  x = tf.cast(inputs, layer._param_dtype)
  axes = [axis for axis in range(x.shape.rank) if axis not in layer.axis]
  mean, variance, count = moments(x, axes, True)
  unbiased = variance * count / tf.maximum(count - 1, 1)
  training = tf.cast(training, tf.bool)
  momentum = tf.where(training, layer.momentum, 1.0)
  for variable, value in ((layer.moving_mean, mean),
                          (layer.moving_variance, unbiased)):
    layer.add_update(layer._assign_moving_average(
        variable, tf.reshape(value, variable.shape), momentum, None))

  def broadcast(parameter):
    return None if parameter is None else tf.reshape(
        parameter, [-1 if axis in layer.axis else 1
                    for axis in range(x.shape.rank)])

  outputs = tf.nn.batch_normalization(
      x, tf.where(training, mean, broadcast(layer.moving_mean)),
      tf.where(training, variance, broadcast(layer.moving_variance)),
      broadcast(layer.beta), broadcast(layer.gamma), layer.epsilon)
  return tf.cast(outputs, inputs.dtype)


class _SlicedVariable(saveable_object.SaveableObject):
  """What makes a variable of several devices be saved as a slice.

  A Saver reads and restores the slices of a partitioned variable through their
  handle, which several devices do not have in common. A SaveableObject it asks.
  """

  @property
  def specs(self):
    return self._saveable.specs

  def restore(self, restored_tensors, restored_shapes):
    return self._saveable.restore(restored_tensors, restored_shapes)

  @functools.cached_property
  def _saveable(self):
    info = self._get_save_slice_info()
    saveable = self._gather_saveables_for_checkpoint()['VARIABLE_VALUE'](
        info.full_name)
    for spec in saveable.specs:
      spec.slice_spec = info.spec
    return saveable


class _SliceableVariable:
  """Goes in front of the class of a variable of several devices."""

  def _set_save_slice_info(self, save_slice_info):
    super()._set_save_slice_info(save_slice_info)
    self.__class__ = _subclass(type(self), _SlicedVariable)


@functools.cache
def _subclass(*bases: type) -> type:
  """One class for the same bases, with the name of the one of TensorFlow."""
  (variable,) = [base for base in bases if issubclass(base, tf.Variable)]
  return type(variable.__name__, bases, {})


def make_sliceable(variable: tf.Variable) -> None:
  """Lets a variable of several devices be a part of a partitioned one.

  TensorFlow's strategies with a copy per device have no partitioned variables,
  as a Saver could not save them. What a Saver asks for is not public.

  Args:
    variable: A new variable, made in a graph; others are left alone.
  """
  if (is_distributed_variable(variable) and
      not tf1.executing_eagerly_outside_functions()):
    variable.__class__ = _subclass(_SliceableVariable, type(variable))


def make_fetchable(value: object) -> None:
  """Lets a session fetch a value of several devices: the first one's.

  It is fetched when the values of all devices are there. A session looks for
  the tensor to fetch under a private name.

  Args:
    value: What a function returned on every device; others than tensors and
      operations of a graph are left alone.
  """
  if not isinstance(value, values.PerReplica) or not all(
      isinstance(v, (tf.Tensor, tf.Operation)) for v in value.values):
    return
  first = value.values[0]
  with tf1.control_dependencies(value.values):
    element = tf.identity(first) if tf.is_tensor(first) else tf.no_op()
  value._as_graph_element = lambda: element


def read_after(variable: tf.Variable, operation: tf.Operation):
  """What an assignment returns: `operation` with the value that comes after it.

  Nothing is read unless the value is used. Assignments make it privately.

  Args:
    variable: A resource variable made in a graph.
    operation: What assigns to it.
  """
  return variable._lazy_read(operation)
