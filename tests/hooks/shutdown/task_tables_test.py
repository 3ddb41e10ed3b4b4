# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the tables of a run's tasks, on servers in this process."""

import threading
from concurrent import futures

import pytest
import tensorflow as tf

from tfplugin.bin.processes import ports
from tfplugin.hooks.shutdown import task_tables

CLAIMED, PRESENT, LEFT, FINISHED = (
    task_tables.CLAIMED, task_tables.PRESENT, task_tables.LEFT,
    task_tables.FINISHED)


@pytest.fixture(name='address')
def _address():
  """Returns the address of a server whose cluster has other tasks, too."""
  cluster = tf.train.ClusterSpec(ports.make_cluster(2, 1))
  server = tf.distribute.Server(cluster, job_name='ps', task_index=0)
  yield cluster.task_address('ps', 0)
  del server


def _states(board):
  return {name: task_tables.state_of(mark)
          for name, mark in board.read().items()}


def test_a_server_that_does_not_answer_has_no_marks(monkeypatch):
  monkeypatch.setattr(task_tables, '_ATTEMPT_MSECS', 200)
  board = task_tables.Board(f'127.0.0.1:{ports.pick_free(1)[0]}')
  assert board.read() is board.description() is None
  assert board.arrive('worker:0') is board.claim('worker:0', 1) is None
  assert board.write_steps('worker:0', 1) is None


def test_states_change_and_a_late_copy_changes_nothing(address):
  board = task_tables.Board(address)
  board.arrive('worker:0')
  old = board.read()
  board.end(['worker:0'], LEFT)
  board.merge(old)
  assert _states(board) == {'worker:0': LEFT}
  # It has restarted; the old mark that it has left is late now.
  left = board.read()
  board.arrive('worker:0')
  board.merge(left)
  assert _states(board) == {'worker:0': PRESENT}
  board.end(['worker:0', 'worker:1'], FINISHED)
  assert _states(board) == {'worker:0': FINISHED, 'worker:1': FINISHED}
  board.close()


def test_a_claim_is_for_a_new_name_within_the_limit(address):
  board = task_tables.Board(address)
  assert board.claim('worker:0', 2) is True
  assert board.claim('worker:0', 2) is False
  assert board.claim('worker:1', 2) is True
  assert board.claim('worker:2', 2) is False
  # A claim that fails leaves no name behind.
  assert _states(board) == {'worker:0': CLAIMED, 'worker:1': CLAIMED}
  board.arrive('worker:1')
  assert _states(board) == {'worker:0': CLAIMED, 'worker:1': PRESENT}
  assert board.claim('worker:2', 2) is False
  board.end(['worker:0'], LEFT)
  assert board.claim('worker:2', 2) is True
  board.close()


def test_of_claims_at_the_same_time_one_gets_the_name(address):
  names = [f'worker:{index}' for index in range(200)]
  together = threading.Barrier(4)

  def claim_all(_):
    board = task_tables.Board(address)
    board.read()
    together.wait()
    return [board.claim(name, len(names)) for name in names]

  with futures.ThreadPoolExecutor(4) as pool:
    claims = list(pool.map(claim_all, range(4)))
  assert [sum(one) for one in zip(*claims)] == [1] * len(names)


def test_steps_and_the_description_are_read_back(address):
  board = task_tables.Board(address, '/job:ps/task:0')
  assert board.description() == ''
  assert board.publish('{"a": 1}')
  assert task_tables.Board(address).description() == '{"a": 1}'
  assert board.write_steps('worker:0', 7) == 0
  board.arrive('worker:0')
  assert task_tables.state_of(board.write_steps('worker:0', 8)) == PRESENT
  board.read()
  assert board.steps == {'worker:0': 8}
  board.close()
