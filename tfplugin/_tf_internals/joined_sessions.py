# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Servers and sessions of a worker that no other task's cluster names."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator
from typing import Callable
from typing import Optional

import tensorflow as tf

# Starts the server of a task with a strategy.
from tensorflow.python.distribute import distribute_coordinator

# Makes the sessions of every MonitoredSession.
from tensorflow.python.training import session_manager

tf1 = tf.compat.v1


@contextlib.contextmanager
def servers_and_sessions_through(
    server_config: Callable[[dict], dict],
    session_config: Callable[[Optional[tf1.ConfigProto]], tf1.ConfigProto],
) -> Iterator[None]:
  """Changes the arguments with which TensorFlow makes servers and sessions.

  `server_config` maps the keyword arguments of a `tf.distribute.Server`,
  `session_config` the settings of a session. Estimator's training, the
  coordinator of strategies and the manager of sessions take the classes from
  modules of private names, and give a caller no say in the cluster.
  """
  owners = (sys.modules[tf.estimator.TrainSpec.__module__],
            distribute_coordinator)
  servers = [owner.server_lib for owner in owners]
  sessions = session_manager.session

  def make_session(target='', graph=None, config=None):
    return sessions.Session(target, graph, session_config(config))

  for owner, module in zip(owners, servers):
    owner.server_lib = types.SimpleNamespace(
        Server=_with_keywords(module.Server, server_config),
        ClusterSpec=module.ClusterSpec)
  session_manager.session = types.SimpleNamespace(Session=make_session)
  try:
    yield
  finally:
    session_manager.session = sessions
    for owner, module in zip(owners, servers):
      owner.server_lib = module


def _with_keywords(make: Callable, change: Callable[[dict], dict]) -> Callable:
  """Returns `make` behind `change`; a first argument is the cluster."""
  return lambda cluster_spec, **kwargs: make(
      **change({'server_or_cluster_def': cluster_spec, **kwargs}))
