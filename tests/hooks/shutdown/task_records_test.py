# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the list of finished tasks, on servers in this process."""

import threading

import pytest
import tensorflow as tf

from tfplugin.bin.processes import ports
from tfplugin.hooks.shutdown import task_records
from tfplugin.hooks.shutdown import task_tables
from tfplugin.hooks.shutdown import waits


@pytest.fixture(scope='module')
def servers():
  """A cluster of which only the two parameter servers run."""
  cluster = tf.train.ClusterSpec(ports.make_cluster(2, 2))
  started = [tf.distribute.Server(cluster, job_name='ps', task_index=i)
             for i in range(2)]
  yield cluster
  del started


def test_who_has_not_reported_is_named_and_reports_are_kept(servers):
  task_records.report_finished(servers, 'worker:1')
  for ps_index in (0, 1):
    with pytest.raises(TimeoutError, match=(
        r'chief:0 waited 0.3 s for the last step of worker:0\. See')):
      waits.wait_for_tasks(servers, ['worker:0', 'worker:1'], 'chief:0',
                                  0.3, ps_index)
  # A restarted worker reports again; reading has consumed nothing.
  task_records.report_finished(servers, 'worker:1')
  waits.wait_for_tasks(servers, ['worker:1'], 'chief:0', 5.0)


def test_a_wait_ends_with_the_report(servers):
  reporter = threading.Timer(
      0.3, task_records.report_finished, [servers, 'worker:7'])
  reporter.start()
  waits.wait_for_tasks(servers, ['worker:7'], 'ps:1', 20.0, ps_index=1)
  reporter.join()


def test_without_a_ps_there_is_nothing_to_report_to():
  task_records.report_finished(
      tf.train.ClusterSpec({'chief': ['127.0.0.1:1']}), 'chief:0')


def test_a_ps_that_has_gone_is_passed_over():
  cluster = tf.train.ClusterSpec(ports.make_cluster(0, 1))
  task_records.report_finished(cluster, 'chief:0', time_limit_secs=0.1)


def test_without_a_task_there_is_nothing_to_report():
  cluster = tf.train.ClusterSpec(ports.make_cluster(0, 1))
  task_records.report_finished(cluster, time_limit_secs=0.1)


def test_a_ps_that_does_not_answer_has_reported_nothing(monkeypatch):
  monkeypatch.setattr(task_tables, '_ATTEMPT_MSECS', 200)
  cluster = tf.train.ClusterSpec(ports.make_cluster(1, 1))
  with pytest.raises(TimeoutError, match='last step of worker:0'):
    waits.wait_for_tasks(cluster, ['worker:0'], 'chief:0', 0.5)


def test_an_empty_list_is_no_report():
  cluster = tf.train.ClusterSpec(ports.make_cluster(1, 1))
  server = tf.distribute.Server(cluster, job_name='ps', task_index=0)
  with pytest.raises(TimeoutError, match='last step of worker:0'):
    waits.wait_for_tasks(cluster, ['worker:0'], 'chief:0', 0.3)
  del server


def test_a_list_is_mended_from_another(servers):
  board = task_records._board(servers, 0)
  board.end(['worker:5'], task_tables.FINISHED)
  assert task_records.TaskRecords(servers, 1).keep() == (
      task_records.TaskRecords(servers, 0).keep() - {'worker:5'})
  waits.wait_for_tasks(servers, ['worker:5'], 'chief:0', 10.0)
  assert 'worker:5' in task_records.TaskRecords(servers, 1).keep()
  board.close()


@pytest.fixture(name='own')
def _own():
  """A cluster of its own for a test, with a parameter server that runs."""
  cluster = tf.train.ClusterSpec(ports.make_cluster(1, 1))
  server = tf.distribute.Server(cluster, job_name='ps', task_index=0)
  yield cluster
  del server


def test_the_present_and_the_expected_are_awaited_until_they_end(own):
  joined = task_records.StepReport(own, 'worker:7', is_present=True)
  ended = []

  def end_one():
    # First it leaves; then the worker of the cluster finishes.
    if not ended:
      task_records.report_left(own, 'worker:7')
    elif len(ended) == 1:
      task_records.report_finished(own, 'worker:0')
    ended.append(task_records.TaskRecords(own).keep())

  waits.wait_for_present(own, ['worker:0'], 'chief:0', 60.0, end_one)
  assert [{'worker:7'}, {'worker:0', 'worker:7'}] == ended
  joined.close()


def test_a_worker_that_stands_still_counts_as_left_and_a_slow_one_returns(
    own, monkeypatch, caplog):
  monkeypatch.setattr(task_records, '_REPORT_SECS', 0.0)
  killed = task_records.StepReport(own, 'worker:7', is_present=True)
  steps = task_records.StepReport(own, 'worker:8', is_present=True)
  lists = task_records.TaskRecords(own)

  def look():
    lists.keep()
    steps.count()
    return 'worker:7' in lists.known and task_records.report_finished(
        own, 'worker:8')

  waits.wait_for_present(own, [], 'chief:0', 1.0, look)
  assert lists.present <= {'worker:8'}
  assert 'worker:7 made no step in 1 s: the run goes on as if it' in caplog.text
  assert 'worker:8 made' not in caplog.text
  # It was not killed, only slow.
  killed.count()
  lists.keep()
  assert lists.present == {'worker:7'}
  lists.close()


def test_a_ps_that_forgets_learns_again_who_is_present(own, monkeypatch):
  monkeypatch.setattr(task_records, '_REPORT_SECS', 0.0)
  report = task_records.StepReport(own, 'worker:7', is_present=True)
  board = task_records._board(own, 0)
  with tf.Graph().as_default(), tf.compat.v1.Session(
      f'grpc://{own.task_address("ps", 0)}',
      config=tf.compat.v1.ConfigProto(device_filters=['/job:ps'])) as session:
    session.run(tf.raw_ops.LookupTableRemoveV2(
        table_handle=tf.raw_ops.MutableHashTableV2(
            key_dtype=tf.string, value_dtype=tf.int64,
            shared_name=task_tables.MARKS), keys=['worker:7']))
  assert not board.read()
  report.count()
  assert list(board.read()) == ['worker:7']
  report.close()
  board.close()


def test_a_report_of_a_fixed_cluster_says_nothing_of_presence(own):
  report = task_records.StepReport(own, 'worker:0')
  report.count()
  lists = task_records.TaskRecords(own)
  lists.keep()
  assert not lists.marks and lists.steps == {'worker:0': 1}
  report.close()
  lists.close()
