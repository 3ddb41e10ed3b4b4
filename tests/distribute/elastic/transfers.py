# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a step of a session sends between tasks, read off its graphs."""

from __future__ import annotations

import collections
from typing import NamedTuple

import tensorflow as tf

tf1 = tf.compat.v1

_SENDS = ('_Send', '_HostSend')
_RECEIVES = ('_Recv', '_HostRecv')


class Transfers(NamedTuple):
  """The messages of one step.

  Attributes:
    messages: How many go from one job to another one: by the two jobs.
    waits: How many of them follow each other in the longest chain.
  """

  messages: dict[tuple[str, str], int]
  waits: int


def of(session, fetch) -> Transfers:
  """Runs a step, and returns what it sends.

  A branch that is not taken sends its tensors, too, as dead ones. The step must
  have no loop: the search for the longest chain would not end.

  Args:
    session: A session of a cluster.
    fetch: What to run.
  """
  nodes = _nodes_of_step(session, fetch)
  senders = {_key(node): place for place, node in nodes.items()
             if node.op in _SENDS}
  return Transfers(_messages(nodes), _longest(nodes, senders))


def messages_of(session, fetch) -> dict[tuple[str, str], int]:
  """Runs a step, which may have loops; returns `Transfers.messages`.

  Args:
    session: A session of a cluster.
    fetch: What to run.
  """
  return _messages(_nodes_of_step(session, fetch))


def _nodes_of_step(session, fetch):
  metadata = tf1.RunMetadata()
  session.run(fetch, run_metadata=metadata, options=tf1.RunOptions(
      output_partition_graphs=True))
  return {(part, node.name): node
          for part, graph in enumerate(metadata.partition_graphs)
          for node in graph.node}


def _messages(nodes):
  return dict(collections.Counter(
      tuple(_task(node, end)[0] for end in ('send_device', 'recv_device'))
      for node in nodes.values() if node.op in _SENDS and _is_remote(node)))


def _longest(nodes, senders):
  """The most messages that follow each other."""
  waits, stack = {}, list(nodes)
  while stack:
    place = stack[-1]
    sources = _sources(place, nodes, senders)
    missing = [source for source in sources if source not in waits]
    if missing:
      stack += missing
      continue
    stack.pop()
    node = nodes[place]
    waits[place] = max((waits[source] for source in sources), default=0) + (
        node.op in _RECEIVES and _is_remote(node))
  return max(waits.values())


def _sources(place, nodes, senders):
  part, name = place
  sources = [(part, each.lstrip('^').split(':')[0])
             for each in nodes[place].input]
  if nodes[place].op in _RECEIVES:
    sources.append(senders.get(_key(nodes[place]), (part, name + ' client')))
  return [source for source in sources if source in nodes]


def _key(node):
  return node.attr['tensor_name'].s


def _is_remote(node):
  return _task(node, 'send_device') != _task(node, 'recv_device')


def _task(node, end):
  spec = tf.DeviceSpec.from_string(node.attr[end].s.decode())
  return spec.job, spec.task
