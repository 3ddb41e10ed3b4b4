# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Calls of a model_fn, decorators of it, and checks of the spec it returns."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Collection
from collections.abc import Sequence
from typing import Any
from typing import Callable

import tensorflow as tf

from tfplugin import types
from tfplugin.distribute import cluster_task
from tfplugin.distribute import per_graph
from tfplugin.distribute import placement
from tfplugin.distribute.packed import packed_steps
from tfplugin.distribute.sessions import prompt_start
from tfplugin.distribute.updates import optimizer_interception
from tfplugin.estimator import decorator_stack

# The decorators whose steps read parameter servers in few messages.
_PACKING = frozenset((decorator_stack.CLIP, decorator_stack.DROP_STALE))
# Whether a decorator builds a step around the current code.
_is_inside = per_graph.ContextValue(False)
_ARGUMENTS = ('features', 'labels', 'mode', 'params', 'config')


@dataclasses.dataclass(frozen=True)
class ModelFnCall:
  """One call that Estimator makes.

  `arguments` has all arguments by name, `mode` only if the model_fn takes it.
  `owner` is the object that the model_fn is a method of, and becomes its
  `self`. `config` is set whether or not the model_fn takes it. It is None where
  the model_fn is called without an Estimator.
  """

  model_fn: types.ModelFn
  mode: str
  arguments: dict[str, Any]
  owner: Any | None = None
  config: Any | None = None

  def __call__(self, **replaced: Any):
    """Calls the model_fn; `replaced` overrides arguments that it takes."""
    arguments = {**self.arguments,
                 **{name: value for name, value in replaced.items()
                    if name in self.arguments}}
    owner = () if self.owner is None else (self.owner,)
    return self.model_fn(*owner, **arguments)


class _Decorator(functools.partial):
  """Decorator that waits for its model_fn; errors have its name."""

  def __repr__(self) -> str:
    name = self.keywords['name']
    return f'{name}(...) without its model_fn: write {name}(model_fn, ...)'


def decorate(model_fn: types.ModelFn | None,
             run: Callable[[ModelFnCall], Any],
             name: str = '', takes_all: bool = False,
             alone_in: Collection[str] = ()) -> types.ModelFn:
  """Returns a model_fn that passes each call on to `run`.

  The result has the signature of `model_fn`, from which Estimator reads its
  arguments, with `mode` and `config` added where they are missing. It works
  above a function, on a method of a class body, on a bound method and on a
  `functools.partial`. The spec of `run` is copied before it is returned.
  Without a `model_fn` the result is a decorator.

  With a `name` other decorators can find this one, and the spec of TRAIN must
  have a loss and a train_op. With `takes_all` the result takes every argument
  that Estimator passes, in Estimator's order. It then passes on those arguments
  that `model_fn` takes. A call inside a strategy is refused in the modes
  `alone_in`.

  Raises TypeError or ValueError if `model_fn` is not callable, does not take
  `features`, or needs an argument that Estimator does not pass. It also raises
  if `model_fn` has a decorator that `name` cannot be above.
  """
  if model_fn is None:
    return _Decorator(decorate, run=run, name=name, takes_all=takes_all,
                      alone_in=alone_in)
  signature = _checked_signature(model_fn)
  inner = decorator_stack.decorators_of(model_fn)
  decorator_stack.check(name, inner)
  names = list(signature.parameters)
  is_method = names[:1] in (['self'], ['cls'])
  added = [key for key in (_ARGUMENTS if takes_all else ('mode', 'config'))
           if key not in names]
  shown = (_with_all(signature, is_method) if takes_all else
           _with_parameters(signature, added))

  def decorated(*args, **kwargs):
    arguments = dict(shown.bind(*args, **kwargs).arguments)
    given = {key: arguments.get(key) for key in ('mode', 'config')}
    if given['mode'] in alone_in:
      check_no_strategy(name)
    _check_no_labels(arguments, added)
    for key in added:
      arguments.pop(key, None)
    if takes_all:
      arguments = {**_needed(signature, is_method), **arguments}
    owner = arguments.pop(names[0]) if is_method else None
    is_outermost = not _is_inside.get()
    with _is_inside.set_to(True):
      spec = run(ModelFnCall(model_fn, given['mode'], arguments, owner,
                             given['config']))
    spec = _checked_copy(spec, name, given['mode'])
    if is_outermost and _PACKING.intersection([name, *inner]):
      _pack_reads(spec)
    return spec

  if hasattr(model_fn, '__name__'):
    functools.update_wrapper(decorated, model_fn)
  decorated.__signature__ = shown
  decorator_stack.mark(decorated, (name, *inner) if name else inner)
  return decorated


def _pack_reads(spec: Any) -> None:
  """Packs what the finished step of a model_fn reads of parameter servers.

  A strategy that calls the model_fn packs for itself. TPUEstimator may build
  its step in a function, and trains without parameter servers.
  """
  if (isinstance(spec, tf.estimator.EstimatorSpec) and
      spec.train_op is not None and not tf.distribute.has_strategy() and
      placement.are_in_tasks(tf.compat.v1.global_variables())):
    packed_steps.pack_reads(spec)


@dataclasses.dataclass(frozen=True)
class TrainingRule:
  """Rule for the optimizers of one call of a model_fn, in TRAIN.

  The model_fn is built with its optimizers intercepted, inside of `scope`.
  `finish` makes the spec of the rule from the spec of the model_fn.
  """

  interception: optimizer_interception.Interception
  finish: Callable[[Any], Any]
  scope: contextlib.AbstractContextManager = contextlib.nullcontext()


def decorate_training(model_fn: types.ModelFn | None,
                      rule: Callable[[ModelFnCall], TrainingRule],
                      name: str, wrapper: str,
                      alone_in: Collection[str] = ()) -> types.ModelFn:
  """Decorates by the rule of each call, but leaves EVAL and PREDICT alone.

  `wrapper` is the code that a user writes instead of the decorator. A worker
  that trains starts, also after a failure, as soon as the chief has initialised
  the variables. See `decorate` for `alone_in`.
  """

  def build_with_rule(call):
    if call.mode != 'train':
      return call()
    made = rule(call)
    with made.scope:
      spec = intercepted(call, made.interception, name, wrapper)
    spec = made.finish(spec)
    task = cluster_task.from_config(call.config)
    if task.num_ps and not task.is_chief:
      prompt_start.add_ready_op(task.training_tasks[0])
    return spec

  return decorate(model_fn, build_with_rule, name, alone_in=alone_in)


def intercepted(call: Callable[[], Any],
                interception: optimizer_interception.Interception,
                decorator: str, wrapper: str) -> Any:
  """Returns the spec of a model_fn that is built inside an interception."""
  with interception.active():
    spec = call()
  check_spec(spec, decorator)
  _check_applied(interception, decorator, wrapper)
  return spec


def check_spec(spec: Any, decorator: str) -> None:
  """Raises unless `spec` is an EstimatorSpec with a loss and a train_op."""
  # By its fields: the spec of TPUEstimator is another class.
  if not hasattr(spec, 'train_op') or not hasattr(spec, '_replace'):
    raise TypeError(
        f'`model_fn` below `{decorator}` must return a '
        f'`tf.estimator.EstimatorSpec`. Received: {spec!r}. Return one in '
        'every mode.')
  for field in ('loss', 'train_op'):
    if getattr(spec, field) is None:
      raise ValueError(
          f'`model_fn` below `{decorator}` must return a `{field}` in TRAIN. '
          f'Received: a spec for mode {spec.mode!r} without one. Pass `mode` '
          f'on to the spec, and `{field}` with it.')


def _check_applied(interception: optimizer_interception.Interception,
                   decorator: str, wrapper: str) -> None:
  """Raises ValueError unless an optimizer of the model_fn was intercepted."""
  if interception.is_applied:
    return
  raise ValueError(
      f'`model_fn` below `{decorator}` must apply gradients with a '
      '`tf.compat.v1.train.Optimizer`. Received: a train_op of something else,'
      ' such as a Keras optimizer. Use e.g. '
      '`tf.compat.v1.train.AdamOptimizer`. If the model_fn enters a strategy '
      f'itself, wrap its optimizer there: `{wrapper}`.')


def check_no_strategy(decorator: str) -> None:
  """Raises RuntimeError inside a tf.distribute strategy."""
  if tf.distribute.has_strategy():
    own = decorator_stack.STRATEGIES.get(decorator)
    raise RuntimeError(
        f'`{decorator}` must not be used inside a tf.distribute strategy. '
        f'Received: {tf.distribute.get_strategy()!r}. Leave out one of the two'
        f'{own and f", or use `tfplugin.distribute.{own}` alone" or ""}.')


def _check_no_labels(arguments: dict[str, Any], added: Sequence[str]) -> None:
  """Raises if a model_fn gets labels that it does not take."""
  if 'labels' in added and arguments.get('labels') is not None:
    raise ValueError(
        '`labels` must be None for a model_fn that does not take them. '
        f'Received: {arguments["labels"]!r}. Let the input_fn return features '
        'only, or the model_fn take `labels`.')


def _needed(signature: inspect.Signature, is_method: bool) -> dict[str, None]:
  """Returns None for each argument that a model_fn requires."""
  return {name: None for name, parameter in list(
      signature.parameters.items())[is_method:]
          if parameter.default is parameter.empty and name in _ARGUMENTS}


def _with_all(signature: inspect.Signature,
              is_method: bool) -> inspect.Signature:
  """Returns the signature of a model_fn that takes all arguments."""
  owner = list(signature.parameters.values())[:is_method]
  return signature.replace(parameters=[*owner, *(
      inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                        default=inspect.Parameter.empty if name == 'features'
                        else None) for name in _ARGUMENTS)])


def _checked_copy(spec: Any, decorator: str, mode: str | None) -> Any:
  """Returns a copy of the spec, as the model_fn may keep the original."""
  if decorator and mode == 'train':
    check_spec(spec, decorator)
  return spec._replace() if hasattr(spec, '_replace') else spec


def _checked_signature(model_fn: types.ModelFn) -> inspect.Signature:
  if not callable(model_fn) or isinstance(model_fn, _Decorator):
    raise TypeError('`model_fn` must be a function. '
                    f'Received: {model_fn!r}. Decorate the function that '
                    'returns the EstimatorSpec.')
  signature = inspect.signature(model_fn)
  if 'features' not in signature.parameters:
    raise ValueError('`model_fn` must take `features`. '
                     f'Received: a function of {signature}. Name its first '
                     'argument `features`.')
  for name, parameter in signature.parameters.items():
    needed = parameter.default is parameter.empty and parameter.kind not in (
        parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    if needed and name not in (*_ARGUMENTS, 'self', 'cls'):
      raise ValueError(
          f'`model_fn` may take {", ".join(_ARGUMENTS)}. Received: a function '
          f'that needs `{name}`. Give it a default, bind it with '
          'functools.partial, or pass it in `params`.')
  return _without_bound(signature, model_fn)


def _without_bound(signature: inspect.Signature,
                   model_fn: types.ModelFn) -> inspect.Signature:
  """Leaves out a partial's bound keywords: Estimator does not pass them."""
  bound = (model_fn.keywords if isinstance(model_fn, functools.partial) else {})
  return signature.replace(parameters=[
      parameter for name, parameter in signature.parameters.items()
      if name not in bound])


def _with_parameters(signature: inspect.Signature,
                     names: Sequence[str]) -> inspect.Signature:
  """Adds parameters before keyword-only ones, where Estimator sees them.

  The arguments of Estimator move there, too: `functools.partial` with a keyword
  makes all later parameters keyword-only, and Estimator looks through it.
  """
  parameters = list(signature.parameters.values())
  end = next((i for i, parameter in enumerate(parameters) if parameter.kind in (
      parameter.VAR_POSITIONAL, parameter.KEYWORD_ONLY,
      parameter.VAR_KEYWORD)), len(parameters))
  visible, hidden = parameters[:end], parameters[end:]
  moved = [parameter for parameter in hidden if parameter.name in _ARGUMENTS]
  is_optional = any(p.default is not p.empty for p in (*visible, *moved))
  visible += [parameter.replace(
      kind=parameter.POSITIONAL_OR_KEYWORD,
      default=None if is_optional and parameter.default is parameter.empty
      else parameter.default) for parameter in moved]
  visible += [inspect.Parameter(
      name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
              for name in names]
  return signature.replace(parameters=[
      *visible, *(parameter for parameter in hidden if parameter not in moved)])
