# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Meets every save of a graph's variables, each start and end of its session.

A Scaffold, a hook or a strategy may bring the Saver, and TensorFlow makes a
session anew after a failure. All of them come by here: `Saver.save`,
`SessionManager.prepare_session` and `wait_for_session`, and `Session.close` are
met for the graphs that have a guard, or something to do there, and are as they
were for all others.
"""

from __future__ import annotations

import functools
import inspect
import weakref
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


@functools.cache
def _meet_savers() -> None:
  original = tf1.train.Saver.save
  signature = inspect.signature(original)

  @functools.wraps(original)
  def save(*args: Any, **kwargs: Any):
    bound = signature.bind(*args, **kwargs).arguments
    saver, session = bound.pop('self'), bound.pop('sess')
    graph = getattr(session, 'graph', None)  # None in eager execution.
    guard = None if graph is None else _guards.get(graph)
    if guard is None:
      return original(*args, **kwargs)
    return guard.save(original, saver, session, bound)

  tf1.train.Saver.save = save


@functools.cache
def _meet_session_managers() -> None:
  manager = tf1.train.SessionManager
  prepare, wait = manager.prepare_session, manager.wait_for_session
  signature = inspect.signature(prepare)

  @functools.wraps(prepare)
  def prepare_session(*args: Any, **kwargs: Any):
    graph = tf1.get_default_graph()
    for act in _before_start.get(graph, ()):
      act()
    guard = _guards.get(graph)
    if guard is None:
      return prepare(*args, **kwargs)
    bound = signature.bind(*args, **kwargs).arguments
    return guard.prepare_session(
        functools.partial(prepare, bound.pop('self')), bound)

  @functools.wraps(wait)
  def wait_for_session(*args: Any, **kwargs: Any):
    for act in _before_start.get(tf1.get_default_graph(), ()):
      act()
    return wait(*args, **kwargs)

  manager.prepare_session = prepare_session
  manager.wait_for_session = wait_for_session


@functools.cache
def _meet_sessions() -> None:
  # That of the base, which a Session has, too.
  session_class = next(c for c in tf1.Session.__mro__ if 'close' in vars(c))
  original = session_class.close

  @functools.wraps(original)
  def close(self: tf1.Session) -> None:
    met = _closings.get(self.graph)
    if met is None:
      original(self)
    else:
      met(functools.partial(original, self))

  session_class.close = close
