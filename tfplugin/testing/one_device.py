# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Comparison of a decorated model_fn with the plain one on one device."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Callable

import numpy as np
import tensorflow as tf

import tfplugin
from tfplugin.distribute.updates import optimizer_interception
from tfplugin.testing import devices as devices_lib

tf1 = tf.compat.v1

_MODES = (tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL,
          tf.estimator.ModeKeys.PREDICT)
_SEED = 1

_GRADIENT = 'gradient of '
# Values that a session cannot pass on.
_NOT_FED = (tf.variant, tf.resource)

# The numbers of a model, in the order of the comparison.
Numbers = dict[str, np.ndarray]


def assert_equals_one_device(
    model_fn: Callable[..., Any],
    input_fn: Callable[[], Any],
    devices: Sequence[str] | None = None,
    steps: int = 2,
    *,
    decorator: Callable[[Callable], Callable] | None = None,
    params: dict[str, Any] | None = None,
    modes: Collection[str] = _MODES,
    rtol: float = 1e-4,
    atol: float = 1e-5,
) -> None:
  """Raises unless a model_fn has the same numbers in towers and on one device.

  Both are trained from the same values, on the same data. Loss, gradients and
  variables are compared after each step, then the metrics of EVAL and the
  predictions of PREDICT, with the trained variables. Make this your first test
  of a decorator.

  Args:
    model_fn: Takes `features`, and `labels`, `mode`, `params`, `config` in any
      subset.
    input_fn: Returns a `tf.data.Dataset`, or features, or features and labels.
    devices: The devices of the towers. By default two logical CPUs, or the
      first one twice where TensorFlow has one only.
    steps: How many steps are trained, and batches evaluated and predicted.
    decorator: Takes the model_fn and returns the one to compare. By default
      `tfplugin.replicate_model_fn(devices=devices)`. With
      `tfplugin.estimator.cross_shard` gradients are not compared: each shard
      has its own.
    params: The `params` of a model_fn that takes them.
    modes: The modes to compare, e.g. `['train']` for a model_fn without
      predictions.
    rtol: The difference that rounding may make, relative to the number.
    atol: Likewise, in addition.

  Raises:
    AssertionError: A number differs. The message names the first one, and says
      by how much.

  Example:
    >>> import tensorflow as tf
    >>> from tfplugin.testing import one_device
    >>> tf1 = tf.compat.v1
    >>> def model_fn(features, labels, mode):
    ...   w = tf1.get_variable('w', initializer=[[0.5]])
    ...   loss = tf.reduce_mean(tf.square(labels - features @ w))
    ...   train_op = tf1.train.AdamOptimizer().minimize(loss)
    ...   return tf.estimator.EstimatorSpec(
    ...       mode, loss=loss, train_op=train_op, predictions=features @ w)
    >>> def input_fn():
    ...   x = tf.constant([[1.0], [2.0], [3.0]])
    ...   return tf1.data.Dataset.from_tensors((x, 2.0 * x)).repeat()
    >>> one_device.assert_equals_one_device(
    ...     model_fn, input_fn, ['/cpu:0', '/cpu:0'])
  """
  modes = tuple(modes)
  if decorator is None:
    decorator = tfplugin.replicate_model_fn(devices=devices or _two_cpus())
  start, expected = _numbers(
      model_fn, input_fn, steps, params, modes, None)
  _, found = _numbers(
      decorator(model_fn), input_fn, steps, params, modes, start)
  _assert_same(found, expected, rtol, atol)


def _two_cpus() -> list[str]:
  try:
    return devices_lib.make_logical_cpus(2)
  except RuntimeError:
    return ['/cpu:0', '/cpu:0']


def _assert_same(found: Numbers, expected: Numbers, rtol: float,
                 atol: float) -> None:
  """Raises an AssertionError that names the first number that differs."""
  if not any(map(_is_gradient, found)):  # Shards have gradients of their own.
    expected = {name: value for name, value in expected.items()
                if not _is_gradient(name)}
  missing = sorted(set(expected) ^ set(found))
  if missing:
    raise AssertionError(
        f'One device and the decorated model_fn have different tensors: '
        f'{missing} are in one of the two.')
  for name, value in expected.items():
    other = found[name]
    if value.shape != other.shape:
      raise AssertionError(
          f'`{name}` differs: its shape is {value.shape} on one device and '
          f'{other.shape} with the decorator.')
    if value.dtype.kind in 'fc':
      same = np.isclose(other, value, rtol, atol, equal_nan=True)
    else:
      same = np.asarray(other == value)
    if not same.all():
      worst = np.argwhere(~same)[0]
      raise AssertionError(
          f'`{name}` differs in {(~same).sum()} of {same.size} elements, first '
          f'at {worst.tolist()}: {value[tuple(worst)]} on one device, '
          f'{other[tuple(worst)]} with the decorator.')


def _is_gradient(name: str) -> bool:
  return f': {_GRADIENT}' in name


def _numbers(model_fn: Callable, input_fn: Callable, steps: int, params: Any,
             modes: Collection[str], start: Numbers | None,
             ) -> tuple[Numbers, Numbers]:
  """Returns the first values of the variables, and the numbers of a model."""
  numbers, variables = {}, dict(start or {})
  first = None
  for mode in _MODES:
    if mode in modes:
      with _model(model_fn, input_fn, mode, params) as (
          inputs, fetches, updates, session):
        _load(session, variables)
        if first is None:
          first = _values(session)
        for step in range(steps):
          # In the run of an update a loss may be read before it or after.
          drawn = session.run([tensor for tensor, _ in inputs])
          batch = {placeholder: value for (_, placeholder), value in zip(
              inputs, drawn)}
          before = _values(session, tf1.local_variables()) if (
              updates) else {}
          for name, value in session.run(fetches, batch).items():
            numbers[f'{mode}, step {step + 1}: {name}'] = np.asarray(value)
          # The gradients of an optimizer may wait for another one's update.
          _load(session, before, tf1.local_variables())
          session.run(updates, batch)
        variables = {**variables, **_values(session)}
        numbers.update((f'{mode}: variable {name}', value)
                       for name, value in _values(session).items())
  return first, numbers


@contextlib.contextmanager
def _model(model_fn: Callable, input_fn: Callable, mode: str, params: Any,
           ) -> Iterator[tuple[list, dict[str, Any], list, tf1.Session]]:
  """Yields inputs, numbers, train op and session of a model.

  The inputs are the tensors of a batch, each with its placeholder.
  """
  with tf.Graph().as_default():
    tf1.set_random_seed(_SEED)
    tf1.train.get_or_create_global_step()
    inputs = []
    features, labels = tf.nest.map_structure(
        functools.partial(_placeholder, inputs), _inputs(input_fn()),
        expand_composites=True)
    arguments = {'features': features, 'labels': labels, 'mode': mode,
                 'params': params, 'config': None}
    wanted = inspect.signature(model_fn).parameters
    gradients = {}
    with optimizer_interception.apply_gradients_replaced(_noting(gradients)):
      spec = model_fn(**{key: value for key, value in arguments.items()
                         if key in wanted})
    hooks = [*spec.training_hooks, *spec.training_chief_hooks,
             *spec.evaluation_hooks, *spec.prediction_hooks]
    updates = [spec.train_op] if mode == tf.estimator.ModeKeys.TRAIN else []
    fetches = _fetches(spec, gradients)
    count = len(tf.config.list_logical_devices('CPU'))
    with tf1.train.SingularMonitoredSession(
        hooks, spec.scaffold,
        config=devices_lib.session_config(count)) as session:
      yield inputs, fetches, updates, session.raw_session()


def _inputs(data: Any) -> tuple[Any, Any]:
  """Returns the features and labels that an input_fn made."""
  if isinstance(data, tf.data.Dataset):
    iterator = tf1.data.make_initializable_iterator(data)
    tf1.add_to_collection(
        tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    data = iterator.get_next()
  return data if isinstance(data, tuple) and len(data) == 2 else (data, None)


def _placeholder(inputs: list[tuple[tf.Tensor, tf.Tensor]], leaf: Any) -> Any:
  """Returns a placeholder for a tensor that a session can pass on.

  Adds both to `inputs`. A feed of the iterator's own tensor would leave the ops
  that wait for the iterator, and each run would draw another batch.
  TensorFlow's graph optimizer adds such ops.
  """
  if not (tf.is_tensor(leaf) and leaf.dtype not in _NOT_FED and
          tf.get_static_value(leaf) is None):
    return leaf
  inputs.append((leaf, tf1.placeholder(leaf.dtype, leaf.shape)))
  return inputs[-1][1]


def _noting(gradients: dict[str, tf.Tensor]) -> Callable:
  """Returns a stand-in for `apply_gradients` that records the gradients."""
  def note(apply_gradients, unused_optimizer, grads_and_vars, *args, **kwargs):
    pairs = list(grads_and_vars)
    graph = tf1.get_default_graph()
    if not graph.building_function and not getattr(
        tf.distribute.get_replica_context(), 'tower', 0):
      for gradient, variable in pairs:
        tensor = None if gradient is None else tf.convert_to_tensor(gradient)
        # A session cannot return a tensor of a branch.
        if tensor is not None and graph.is_fetchable(tensor):
          gradients.setdefault(f'{_GRADIENT}{variable.op.name}', tensor)
    return apply_gradients(pairs, *args, **kwargs)
  return note


def _fetches(spec: Any, gradients: Mapping[str, tf.Tensor]) -> dict[str, Any]:
  """Returns the tensors of a spec by the names in a message."""
  fetches = {} if spec.loss is None else {'loss': spec.loss}
  if spec.mode == tf.estimator.ModeKeys.TRAIN:
    return {**fetches, **gradients}
  for name, (_, update) in sorted((spec.eval_metric_ops or {}).items()):
    fetches[f'metric {name}'] = update
  leaves = enumerate(tf.nest.flatten(spec.predictions, expand_composites=True))
  fetches.update((f'prediction {name}', leaf) for name, leaf in leaves
                 if tf.is_tensor(leaf))
  return fetches


def _values(session: tf1.Session, others: Sequence[Any] = ()) -> Numbers:
  """Returns the values of the global variables, and of others, by name."""
  names = sorted({
      v.op.name: v for v in [*tf1.global_variables(), *others]}.items())
  return {name: session.run(_read(variable)) for name, variable in names}


def _read(variable: tf.Variable) -> Any:
  get = getattr(variable, 'get', None)
  return get() if get is not None else variable


def _load(session: tf1.Session, values: Numbers,
          others: Sequence[Any] = ()) -> None:
  """Loads values into the global variables, and into others, by name."""
  for variable in [*tf1.global_variables(), *others]:
    if variable.op.name in values:
      _read(variable).load(values[variable.op.name], session)
