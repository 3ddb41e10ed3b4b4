# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Interception of a graph's end, its saves and its sessions.

A Scaffold, a hook or a strategy may bring the Saver, and TensorFlow makes a new
session after a failure. This module replaces `Graph.finalize`, `Saver.save`,
`SessionManager.prepare_session` and `wait_for_session`, `Session.run` and
`Session.close`.
For graphs without a registered function they behave as before.
Other libraries may replace the same methods, before or after. Their
replacements are called, and the functions of a graph are called only once.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Union

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import per_graph

tf1 = tf.compat.v1


# Of each graph, the function that replaces the save of a Saver: it saves or
# refuses, and returns the path of the newest checkpoint, or None. It gets the
# original function, then its arguments: the Saver, the session, and a
# dictionary of all others by name.
SaveFn = Callable[
    [Callable[..., str], tf1.train.Saver, tf1.Session, dict[str, Any]],
    Union[str, None]]
# Likewise for `prepare_session`; returns a session whose variables are
# initialised or restored. The original method is bound.
PrepareFn = Callable[[Callable[..., tf1.Session], dict[str, Any]], tf1.Session]
# Likewise for the `init_fn` of `prepare_session`, or None. It gets that, the
# session and the `init_op`, which has run.
InitFn = Callable[
    [Union[Callable[[tf1.Session], None], None], tf1.Session, Any], None]

_saves = per_graph.PerGraph()
_starts = per_graph.PerGraph()
_init_fns = per_graph.PerGraph()
_before_start = per_graph.PerGraph()
_on_completion = per_graph.PerGraph()
_after_start = per_graph.PerGraph()
_closings = per_graph.PerGraph()
_runs = per_graph.PerGraph()

_SAVE_ARGUMENTS = (
    'save_path', 'global_step', 'latest_filename', 'meta_graph_suffix',
    'write_meta_graph', 'write_state', 'strip_default_attrs', 'save_debug_info')
_PREPARE_ARGUMENTS = (
    'master', 'init_op', 'saver', 'checkpoint_dir',
    'checkpoint_filename_with_path', 'wait_for_checkpoint', 'max_wait_secs',
    'config', 'init_feed_dict', 'init_fn')
_threads = threading.local()



def in_place_of_save(save: SaveFn) -> None:
  """Makes `save` save the current graph; it replaces an earlier one."""
  _intercept_savers()
  _saves[tf1.get_default_graph()] = save


def in_place_of_start(prepare_session: PrepareFn) -> None:
  """Makes `prepare_session` start the chief's sessions, likewise."""
  _intercept_session_managers()
  _starts[tf1.get_default_graph()] = prepare_session


def in_place_of_init_fn(init_fn: InitFn) -> None:
  """Replaces `init_fn` in sessions that are initialised, and not restored."""
  _intercept_session_managers()
  _init_fns[tf1.get_default_graph()] = init_fn


def before_start(act: Callable[[], None]) -> None:
  """Adds a function to be called before each session of the current graph.

  The functions are called in the order of registration, in the graph. They may
  wait, or raise.
  """
  _intercept_session_managers()
  _before_start.setdefault(tf1.get_default_graph(), []).append(act)


def on_completion(act: Callable[[], None]) -> None:
  """Adds a function to be called once, when the current graph is complete.

  All hooks have begun then: TensorFlow finalizes the graph, or makes the first
  session of one that is not finalized. The functions are called in the order of
  registration, in the graph, and may add ops. A hook that lists variables in
  `begin` would miss the variables of later hooks.
  """
  _intercept_graphs()
  _intercept_session_managers()
  _on_completion.setdefault(tf1.get_default_graph(), []).append(act)


def after_start(act: Callable[[tf1.Session, dict[str, Any]], None]) -> None:
  """Adds a function to be called with each session that the chief has started.

  It gets the session and the arguments of `prepare_session`, in the graph.
  """
  _intercept_session_managers()
  _after_start.setdefault(tf1.get_default_graph(), []).append(act)


def is_starting(graph: tf.Graph) -> bool:
  """Returns whether this thread starts a session of `graph`."""
  return ('start', id(graph)) in vars(_threads).get('entered', ())


def in_place_of_close(close: Callable[[Callable[[], None]], None]) -> None:
  """Makes `close` end the sessions of the current graph.

  `close` is called with a function that closes the session. It replaces an
  earlier one.
  """
  _intercept_sessions()
  _closings[tf1.get_default_graph()] = close


def in_place_of_run(run: Callable[..., Any]) -> None:
  """Makes `run` run the sessions of the current graph.

  It gets the original method, then its arguments: the session, the fetches and
  so on. It replaces an earlier one.
  """
  _intercept_sessions()
  _runs[tf1.get_default_graph()] = run


def _intercept_graphs() -> None:
  def make(original):
    def finalize(self):
      _complete(self)
      return original(self)

    return finalize

  _tf_internals.stay_replaced(tf.Graph, finalize=make)


def _intercept_savers() -> None:
  def make(original):
    def save(self, sess, *args: Any, **kwargs: Any):
      # In eager execution there is no graph.
      graph = getattr(sess, 'graph', None)
      registered = None if graph is None else _saves.get(graph)
      with _entered('save', graph) as is_first:
        if registered is None or not is_first:
          return original(self, sess, *args, **kwargs)
        return registered(
            lambda saver, session, save_path, **others: original(
                saver, session, save_path, **others),
            self, sess, _by_name(_SAVE_ARGUMENTS, args, kwargs))

    return save

  _tf_internals.stay_replaced(tf1.train.Saver, save=make)


def _intercept_session_managers() -> None:
  def make_prepare(original):
    def prepare_session(self, *args: Any, **kwargs: Any):
      graph = tf1.get_default_graph()
      with _entered('start', graph) as is_first:
        if not is_first:
          return original(self, *args, **kwargs)
        _act_before_start(graph)
        arguments = _by_name(_PREPARE_ARGUMENTS, args, kwargs)
        _replace_init_fn(graph, arguments)
        registered = _starts.get(
            graph, lambda prepare, all_of: prepare(**all_of))
        session = registered(
            lambda master, **others: original(self, master, **others),
            arguments)
        _act_after_start(graph, session, arguments)
        return session

    return prepare_session

  def make_wait(original):
    def wait_for_session(self, *args: Any, **kwargs: Any):
      graph = tf1.get_default_graph()
      with _entered('start', graph) as is_first:
        if is_first:
          _act_before_start(graph)
        return original(self, *args, **kwargs)

    return wait_for_session

  _tf_internals.stay_replaced(
      tf1.train.SessionManager, prepare_session=make_prepare,
      wait_for_session=make_wait)


def _intercept_sessions() -> None:
  def make(original):
    def close(self) -> None:
      with _entered('close', self.graph) as is_first:
        registered = _closings.get(self.graph) if is_first else None
        if registered is None:
          original(self)
        else:
          registered(functools.partial(original, self))

    return close

  def make_run(original):
    def run_intercepted(self, *args: Any, **kwargs: Any):
      with _entered('run', self.graph) as is_first:
        registered = _runs.get(self.graph) if is_first else None
        if registered is None:
          return original(self, *args, **kwargs)
        return registered(original, self, *args, **kwargs)

    return run_intercepted

  # The methods of the base class, which Session inherits.
  _tf_internals.stay_replaced(
      next(c for c in tf1.Session.__mro__ if 'close' in vars(c)), close=make,
      run=make_run)


def _complete(graph: tf.Graph) -> None:
  acts = _on_completion.get(graph)
  if acts:
    _on_completion[graph] = []
    with graph.as_default():
      for act in acts:
        act()


def _act_before_start(graph: tf.Graph) -> None:
  _complete(graph)
  for act in _before_start.get(graph, ()):
    act()


def _replace_init_fn(graph: tf.Graph, arguments: dict[str, Any]) -> None:
  init_fn = _init_fns.get(graph)
  if init_fn is not None:
    arguments['init_fn'] = functools.partial(
        init_fn, arguments.get('init_fn'), init_op=arguments.get('init_op'))


def _act_after_start(graph: tf.Graph, session: tf1.Session,
                     arguments: dict[str, Any]) -> None:
  for act in _after_start.get(graph, ()):
    act(session, arguments)


def _by_name(names: Sequence[str], args: Sequence[Any],
             kwargs: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the arguments by the names that TensorFlow's function gives them.

  A library that has replaced that function may name its parameters differently.
  """
  return {**dict(zip(names, args)), **kwargs}


@contextlib.contextmanager
def _entered(what: str, graph: tf.Graph | None) -> Iterator[bool]:
  """Yields whether this is the outermost of nested calls for a graph.

  Calls are nested if a library has put its function between two of ours.
  """
  entered = vars(_threads).setdefault('entered', set())
  key = (what, id(graph))
  is_first = key not in entered
  entered.add(key)
  try:
    yield is_first
  finally:
    if is_first:
      entered.remove(key)
