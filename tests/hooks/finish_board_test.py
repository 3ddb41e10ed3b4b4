# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the list of finished tasks, on servers in this process."""

import threading

import pytest
import tensorflow as tf

from tfplugin.bin import ports
from tfplugin.hooks import finish_board
from tfplugin.hooks.endings import task_tables


@pytest.fixture(scope='module')
def servers():
  """A cluster of which only the two parameter servers run."""
  cluster = tf.train.ClusterSpec(ports.make_cluster(2, 2))
  started = [tf.distribute.Server(cluster, job_name='ps', task_index=i)
             for i in range(2)]
  yield cluster
  del started


def test_who_has_not_reported_is_named_and_reports_are_kept(servers):
  finish_board.report_finished(servers, 'worker:1')
  for ps_index in (0, 1):
    with pytest.raises(TimeoutError, match=(
        r'chief:0 waited 0.3 s for the last step of worker:0\. See')):
      finish_board.wait_for_tasks(servers, ['worker:0', 'worker:1'], 'chief:0',
                                  0.3, ps_index)
  # A restarted worker reports again; reading has consumed nothing.
  finish_board.report_finished(servers, 'worker:1')
  finish_board.wait_for_tasks(servers, ['worker:1'], 'chief:0', 5.0)


def test_a_wait_ends_with_the_report(servers):
  reporter = threading.Timer(
      0.3, finish_board.report_finished, [servers, 'worker:7'])
  reporter.start()
  finish_board.wait_for_tasks(servers, ['worker:7'], 'ps:1', 20.0, ps_index=1)
  reporter.join()


def test_without_a_ps_there_is_nothing_to_report_to():
  finish_board.report_finished(
      tf.train.ClusterSpec({'chief': ['127.0.0.1:1']}), 'chief:0')


def test_a_ps_that_has_gone_is_passed_over():
  cluster = tf.train.ClusterSpec(ports.make_cluster(0, 1))
  finish_board.report_finished(cluster, 'chief:0', time_limit_secs=0.1)


def test_without_a_task_there_is_nothing_to_report():
  cluster = tf.train.ClusterSpec(ports.make_cluster(0, 1))
  finish_board.report_finished(cluster, time_limit_secs=0.1)


def test_a_ps_that_does_not_answer_has_reported_nothing(monkeypatch):
  monkeypatch.setattr(task_tables, '_ATTEMPT_MSECS', 200)
  cluster = tf.train.ClusterSpec(ports.make_cluster(1, 1))
  with pytest.raises(TimeoutError, match='last step of worker:0'):
    finish_board.wait_for_tasks(cluster, ['worker:0'], 'chief:0', 0.5)


def test_an_empty_list_is_no_report():
  cluster = tf.train.ClusterSpec(ports.make_cluster(1, 1))
  server = tf.distribute.Server(cluster, job_name='ps', task_index=0)
  with pytest.raises(TimeoutError, match='last step of worker:0'):
    finish_board.wait_for_tasks(cluster, ['worker:0'], 'chief:0', 0.3)
  del server


def test_a_list_is_mended_from_another(servers):
  board = finish_board._board(servers, 0)
  board.end(['worker:5'], task_tables.FINISHED)
  assert finish_board.Lists(servers, 1).keep() == (
      finish_board.Lists(servers, 0).keep() - {'worker:5'})
  finish_board.wait_for_tasks(servers, ['worker:5'], 'chief:0', 10.0)
  assert 'worker:5' in finish_board.Lists(servers, 1).keep()
  board.close()
