# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what ends an evaluator."""

import pathlib
import socket
import threading
import time

import pytest
import tensorflow as tf

from tfplugin.bin.processes import ports
from tfplugin.distribute import cluster_task
from tfplugin.hooks.shutdown import chief_report

tf1 = tf.compat.v1

# Clusters whose chief has no port that the evaluator could see.
_WITHOUT_PORT = {
    'a chief': lambda: ports.make_cluster(0, 0),
    'a worker': lambda: {'worker': ports.make_cluster(0, 0)['chief']},
    'unknown': lambda: {},
}


def _watch(model_dir, time_limit_secs=600.0, cluster=None, max_steps=None):
  cluster = ports.make_cluster(0, 1) if cluster is None else cluster
  task = cluster_task.ClusterTask(tf.train.ClusterSpec(cluster), 'evaluator')
  return chief_report.Watch(task, str(model_dir), time_limit_secs, max_steps)


def _save(model_dir, step):
  with tf.Graph().as_default(), tf1.Session() as session:
    variable = tf1.get_variable('v', initializer=1.0)
    session.run(variable.initializer)
    tf1.train.Saver().save(session, f'{model_dir}/model.ckpt', step)


def test_after_the_report_the_last_checkpoint_is_still_evaluated(tmp_path):
  watch = _watch(tmp_path)
  _save(tmp_path, 1)
  assert watch.goes_on()
  _save(tmp_path, 2)
  chief_report.write(str(tmp_path))
  assert watch.goes_on()  # Evaluates 2.
  assert not watch.goes_on()


def test_the_report_ends_a_wait(tmp_path):
  watch = _watch(tmp_path)
  watch.wait(0.01)  # Nothing is reported.
  thread = threading.Thread(target=watch.wait, args=(10.0**6,), daemon=True)
  thread.start()
  chief_report.write(str(tmp_path))
  thread.join(60)
  assert not thread.is_alive()


def test_the_report_of_an_earlier_run_says_nothing(tmp_path):
  chief_report.write(str(tmp_path))
  watch = _watch(tmp_path)
  assert watch.goes_on() and watch.goes_on()
  chief_report.delete(str(tmp_path))
  assert watch.goes_on()
  chief_report.write(str(tmp_path))
  assert watch.goes_on()
  assert not watch.goes_on()
  chief_report.delete(str(tmp_path))
  chief_report.delete(str(tmp_path))
  assert not list(pathlib.Path(tmp_path).iterdir())


def test_a_chief_that_has_gone_is_no_more_waited_for(tmp_path, caplog):
  watch = _watch(tmp_path, 0.1)
  _save(tmp_path, 1)
  while watch.goes_on():
    pass
  assert 'evaluator:0 waited 0.1 s for a sign of chief:0' in caplog.text


@pytest.mark.parametrize('cluster', [None, 'a chief', 'a worker'])
def test_a_chief_that_has_gone_without_a_checkpoint_is_an_error(
    cluster, tmp_path):
  """The directory of each task is on a disk of its own."""
  watch = _watch(tmp_path, 0.1, cluster and _WITHOUT_PORT[cluster]())
  with pytest.raises(TimeoutError, match=(
      'for a sign of (chief|worker):0.*no checkpoint.*'
      f'{tmp_path.name}.*share')):
    while watch.goes_on():
      pass


def _go_on_for(secs, watch):
  end = time.monotonic() + secs
  while time.monotonic() < end:
    assert watch.goes_on()
    watch.wait(0.05)


@pytest.mark.parametrize('cluster', _WITHOUT_PORT)
def test_a_chief_without_a_port_is_waited_for_until_it_reports(
    cluster, tmp_path):
  """TensorFlow starts no server in the only task of a cluster."""
  watch = _watch(tmp_path, 0.1, _WITHOUT_PORT[cluster]())
  _save(tmp_path, 1)
  _go_on_for(0.5, watch)
  _save(tmp_path, 2)
  chief_report.write(str(tmp_path))
  assert watch.goes_on()  # Evaluates 2.
  assert watch.is_complete() and not watch.goes_on()


def test_a_chief_without_a_port_has_ended_at_max_steps(tmp_path):
  watch = _watch(tmp_path, 0.1, ports.make_cluster(0, 0), 5)
  watch.evaluated(4)
  assert not watch.is_complete()
  watch.evaluated(5)
  assert watch.is_complete()


@pytest.mark.parametrize('cluster', [None, *_WITHOUT_PORT])
def test_a_report_that_no_chief_deletes_is_of_this_run(
    cluster, tmp_path, caplog):
  """The evaluator was preempted in its last evaluation, and restarts."""
  _save(tmp_path, 1)
  chief_report.write(str(tmp_path))
  watch = _watch(tmp_path, 1.0, cluster and _WITHOUT_PORT[cluster]())
  assert watch.goes_on() and not watch.is_complete()
  start = time.monotonic()
  watch.wait(10.0**6)
  assert time.monotonic() - start < 60.0
  assert watch.goes_on() and watch.is_complete()
  assert not watch.goes_on()
  assert 'has not started again for 1 s: the training has' in caplog.text


def test_a_report_is_of_this_run_after_some_time_without_a_limit(
    tmp_path, monkeypatch):
  monkeypatch.setattr(chief_report, '_EARLIER_SECS', 0.2)
  chief_report.write(str(tmp_path))
  watch = _watch(tmp_path, None)
  assert not watch.is_complete()
  time.sleep(0.3)
  assert watch.is_complete()


def test_a_new_chief_deletes_the_report_of_an_earlier_run_in_time(tmp_path):
  _save(tmp_path, 1)
  chief_report.write(str(tmp_path))
  watch = _watch(tmp_path, 0.3, ports.make_cluster(0, 0))
  assert not watch.is_complete()
  chief_report.delete(str(tmp_path))
  _go_on_for(0.6, watch)
  chief_report.write(str(tmp_path))
  assert watch.is_complete()


def test_a_chief_with_an_open_port_is_asked_for_a_new_report(tmp_path):
  cluster = ports.make_cluster(0, 1)
  host, port = cluster['chief'][0].split(':')
  with socket.create_server((host, int(port))):
    chief_report.write(str(tmp_path))
    watch = _watch(tmp_path, 0.1, cluster)
    _go_on_for(0.4, watch)
  assert watch.is_complete()


def test_the_report_of_the_same_launch_is_the_end(tmp_path, monkeypatch):
  _save(tmp_path, 1)
  monkeypatch.setenv('TFPLUGIN_SESSION', '2')
  chief_report.write(str(tmp_path))
  watch = _watch(tmp_path)
  assert watch.goes_on() and watch.is_complete()  # Evaluates 1.
  assert not watch.goes_on()
  # A second call of `train_and_evaluate`, before the chief makes its own.
  assert not _watch(tmp_path).is_complete()
  chief_report.write(str(tmp_path))
  for number in ('12', '3'):
    monkeypatch.setenv('TFPLUGIN_SESSION', number)
    assert not _watch(tmp_path).is_complete()
  monkeypatch.delenv('TFPLUGIN_SESSION')
  assert not _watch(tmp_path).is_complete()
