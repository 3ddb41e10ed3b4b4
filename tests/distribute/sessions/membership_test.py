# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what TF_CONFIG says of workers that join."""

import json

import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin.distribute import cluster_task
from tfplugin.distribute.sessions import membership
from tfplugin.events import clock
from tfplugin.events import event_log

_CLUSTER = {'ps': ['a:1'], 'chief': ['a:2'], 'worker': ['a:3']}


def _set(monkeypatch, cluster=None, task=('worker', 0), **keys):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': _CLUSTER if cluster is None else cluster,
      'task': {'type': task[0], 'index': task[1]}, **keys}))
  return cluster_task.from_environment()


def test_without_the_keys_the_cluster_is_fixed(monkeypatch):
  task = _set(monkeypatch)
  assert membership.read() == (None, False)
  membership.check(task)
  membership.refuse('SomeForm')
  _set(monkeypatch, task=('evaluator', 0), max_workers=3)
  membership.check(cluster_task.from_environment())
  monkeypatch.delenv('TF_CONFIG')
  assert not membership.read().is_open


@pytest.mark.parametrize('keys, match', [
    ({'max_workers': 0}, '`max_workers` in `TF_CONFIG` must.*Received: 0'),
    ({'max_workers': True}, 'Received: True'),
    ({'max_workers': '3'}, "Received: '3'"),
    ({'joins': 1}, '`joins` in `TF_CONFIG` must be true or false. Received: 1'),
])
def test_wrong_values_are_refused(monkeypatch, keys, match):
  _set(monkeypatch, **keys)
  with pytest.raises(ValueError, match=match):
    membership.read()


def test_without_a_ps_nobody_can_join(monkeypatch):
  task = _set(monkeypatch, {'chief': ['a:2'], 'worker': ['a:3']},
              max_workers=3)
  with pytest.raises(ValueError, match='restarts the whole group'):
    membership.check(task)


@pytest.mark.parametrize('cluster, task', [
    # Alone with a ps it would be the chief.
    ({'ps': ['a:1'], 'worker': {'7': 'a:9'}}, ('worker', 7)),
    (_CLUSTER, ('chief', 0)),
    (_CLUSTER, ('ps', 0)),
])
def test_a_task_that_joins_is_never_the_chief(monkeypatch, cluster, task):
  task = _set(monkeypatch, cluster, task, max_workers=3, joins=True)
  with pytest.raises(ValueError, match='must be a worker, and `cluster`'):
    membership.check(task)


def test_a_worker_that_joins_knows_the_chief(monkeypatch):
  task = _set(monkeypatch, {**_CLUSTER, 'worker': {'7': 'a:9'}}, ('worker', 7),
              max_workers=3, joins=True)
  membership.check(task)
  assert not task.is_chief
  assert membership.read() == (3, True)


def test_the_description_has_the_session_and_the_clock(monkeypatch, tmp_path):
  task = _set(monkeypatch, max_workers=3)
  described = {'cluster': _CLUSTER, 'max_workers': 3,
               'variables': clock.variables()}
  assert json.loads(membership.description(task.cluster_spec)) == described
  monkeypatch.setenv(event_log.SESSION_VARIABLE, '4')
  with event_log.recording(tmp_path, 'ps:0'):
    described['variables'][event_log.SESSION_VARIABLE] = '4'
    assert json.loads(membership.description(task.cluster_spec)) == described


def test_synchronous_forms_refuse_in_one_sentence(monkeypatch):
  _set(monkeypatch, max_workers=3)
  with pytest.raises(ValueError, match='No worker can join or leave '
                     'CrossShardStrategy, a synchronous form: another number '
                     'of workers restarts the whole group'):
    distribute.CrossShardStrategy()


def test_a_synchronous_start_of_elastic_averaging_refuses(monkeypatch):
  _set(monkeypatch, max_workers=3)
  strategy = distribute.ElasticAverageStrategy(synchronous=True)
  with tf.Graph().as_default(), strategy.scope():
    with pytest.raises(ValueError, match='leave elastic averaging with sync'):
      tf.compat.v1.get_variable('w', initializer=1.0)
