# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Meets every save of a graph's variables, each start and end of its session.

A Scaffold, a hook or a strategy may bring the Saver, and TensorFlow makes a
session anew after a failure. All of them come by here: `Saver.save`,
`SessionManager.prepare_session` and `wait_for_session`, and `Session.close` are
met for the graphs that have a guard, or something to do there, and are as they
were for all others. Other libraries replace the same methods, before or after:
theirs are called, and what is to be done here is done once.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional
from typing import Protocol

import tensorflow as tf

tf1 = tf.compat.v1


class Guard(Protocol):
  """What is done in the place of a save, and of the start of a session."""

  def save(self, save: Callable[..., str], saver: tf1.train.Saver,
           session: tf1.Session, arguments: dict[str, Any]) -> Optional[str]:
    """Saves, or does not.

    Args:
      save: `tf.compat.v1.train.Saver.save` itself.
      saver: Its first argument.
      session: Its second.
      arguments: The others, by name.

    Returns:
      The path of the newest checkpoint, or None.
    """

  def prepare_session(self, prepare: Callable[..., tf1.Session],
                      arguments: dict[str, Any]) -> tf1.Session:
    """Makes a session whose variables are initialised or restored.

    Args:
      prepare: `SessionManager.prepare_session` itself, of one manager.
      arguments: Its arguments, by name.

    Returns:
      The session.
    """


_guards: weakref.WeakKeyDictionary[tf.Graph, Guard] = (
    weakref.WeakKeyDictionary())
_before_start = weakref.WeakKeyDictionary()
_closings = weakref.WeakKeyDictionary()

_SAVE_ARGUMENTS = (
    'save_path', 'global_step', 'latest_filename', 'meta_graph_suffix',
    'write_meta_graph', 'write_state', 'strip_default_attrs', 'save_debug_info')
_PREPARE_ARGUMENTS = (
    'master', 'init_op', 'saver', 'checkpoint_dir',
    'checkpoint_filename_with_path', 'wait_for_checkpoint', 'max_wait_secs',
    'config', 'init_feed_dict', 'init_fn')
_MARK = 'tfplugin_meets'
_threads = threading.local()


def put(guard: Guard) -> None:
  """Lets `guard` meet the saves and sessions of the graph that is being built.

  Args:
    guard: It takes the place of an earlier one.
  """
  _meet_savers()
  _meet_session_managers()
  _guards[tf1.get_default_graph()] = guard


def before_start(act: Callable[[], None]) -> None:
  """Lets `act` be called before each session of the graph that is being built.

  Args:
    act: Called in the order of these calls, in the graph; may wait, or raise.
  """
  _meet_session_managers()
  _before_start.setdefault(tf1.get_default_graph(), []).append(act)


def in_place_of_close(close: Callable[[Callable[[], None]], None]) -> None:
  """Lets `close` end the sessions of the graph that is being built.

  Args:
    close: Called with what closes the session; takes the place of an earlier
      one.
  """
  _meet_sessions()
  _closings[tf1.get_default_graph()] = close


def _meet_savers() -> None:
  def make(original):
    def save(self, sess, *args: Any, **kwargs: Any):
      # No graph in eager execution.
      graph = getattr(sess, 'graph', None)
      guard = None if graph is None else _guards.get(graph)
      with _entered('save', graph) as is_first:
        if guard is None or not is_first:
          return original(self, sess, *args, **kwargs)
        return guard.save(
            lambda saver, session, save_path, **others: original(
                saver, session, save_path, **others),
            self, sess, _by_name(_SAVE_ARGUMENTS, args, kwargs))

    return save

  _replace(tf1.train.Saver, 'save', make)


def _meet_session_managers() -> None:
  def make_prepare(original):
    def prepare_session(self, *args: Any, **kwargs: Any):
      graph = tf1.get_default_graph()
      with _entered('start', graph) as is_first:
        if is_first:
          _act_before_start(graph)
        guard = _guards.get(graph)
        if guard is None or not is_first:
          return original(self, *args, **kwargs)
        return guard.prepare_session(
            lambda master, **others: original(self, master, **others),
            _by_name(_PREPARE_ARGUMENTS, args, kwargs))

    return prepare_session

  def make_wait(original):
    def wait_for_session(self, *args: Any, **kwargs: Any):
      graph = tf1.get_default_graph()
      with _entered('start', graph) as is_first:
        if is_first:
          _act_before_start(graph)
        return original(self, *args, **kwargs)

    return wait_for_session

  _replace(tf1.train.SessionManager, 'prepare_session', make_prepare)
  _replace(tf1.train.SessionManager, 'wait_for_session', make_wait)


def _meet_sessions() -> None:
  def make(original):
    def close(self) -> None:
      with _entered('close', self.graph) as is_first:
        met = _closings.get(self.graph) if is_first else None
        if met is None:
          original(self)
        else:
          met(functools.partial(original, self))

    return close

  # That of the base, which a Session has, too.
  _replace(next(c for c in tf1.Session.__mro__ if 'close' in vars(c)), 'close',
           make)


def _act_before_start(graph: tf.Graph) -> None:
  for act in _before_start.get(graph, ()):
    act()


def _by_name(names: Sequence[str], args: Sequence[Any],
             kwargs: Mapping[str, Any]) -> dict[str, Any]:
  """Returns arguments by the names that callers of TensorFlow's function use.

  A library that has replaced that function may call them otherwise.
  """
  return {**dict(zip(names, args)), **kwargs}


def _replace(owner: type, name: str,
             make: Callable[[Callable], Callable]) -> None:
  """Puts a function around a method, unless one is around it already."""
  original = getattr(owner, name)
  # A library that wraps ours, as `functools.wraps` does, hands the mark on.
  if not hasattr(original, _MARK):
    replacement = functools.wraps(original)(make(original))
    setattr(replacement, _MARK, True)
    setattr(owner, name, replacement)


@contextlib.contextmanager
def _entered(what: str, graph: Optional[tf.Graph]) -> Iterator[bool]:
  """Says whether this is the outermost call, where one is around another.

  That is so after a library has put a function of its own in between.
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
