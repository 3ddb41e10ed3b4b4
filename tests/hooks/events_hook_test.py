# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the events of a training session."""

import json

import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin import estimator
from tfplugin.bin.processes import ports
from tfplugin.distribute import per_graph
from tfplugin.events import event_files
from tfplugin.events import event_log
from tfplugin.events import record
from tfplugin.hooks import events_hook

tf1 = tf.compat.v1


def _model_fn(features, labels, mode):
  del features, labels
  weight = tf1.get_variable('weight', initializer=4.0)
  loss = tf.square(weight)
  train_op = tf1.train.GradientDescentOptimizer(0.25).minimize(
      loss, global_step=tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def _input_fn():
  return tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat()


def _config(model_dir, **kwargs):
  return tf.estimator.RunConfig(str(model_dir), **kwargs)


def _train(model_dir, model_fn=_model_fn, steps=6, **kwargs):
  """Trains by a function that brings no hook of its own; reports each step."""
  config = _config(model_dir, **kwargs)
  hook = events_hook.EventsHook(config, every_secs=1e-9)
  tf.estimator.Estimator(model_fn, config=config).train(
      _input_fn, hooks=[hook], max_steps=steps)


def _events(model_dir, name, task='chief:0'):
  path = event_files.path_of(model_dir, task)
  events = event_files.read_file(path).events
  return [(e.kind, e.step, e.details) for e in events if e.name == name]


def test_start_steps_and_end_of_a_session(tmp_path, behavior):
  _train(tmp_path, steps=3)
  assert [e[:2] for e in _events(tmp_path, 'starting')] == [
      ('begin', None), ('end', 0)]
  training = _events(tmp_path, 'training')
  assert [e[:2] for e in training] == [
      ('begin', 1), ('instant', 2), ('instant', 3), ('end', 3)]
  assert [e[2]['num_steps'] for e in training] == [1, 2, 3, 3]
  assert all(e[2]['steps_per_sec'] >= 0 for e in training[1:])
  assert not _events(tmp_path, 'exchanging') + _events(tmp_path, 'dropping')


@pytest.mark.parametrize('decorator', [
    lambda model_fn: estimator.elastic_average(
        model_fn, communication_period=2, count_steps='local', rho=0.0),
    lambda model_fn: model_fn])
def test_exchanges_are_counted(tmp_path, behavior, decorator):
  model_fn, kwargs = decorator(_model_fn), {}
  if model_fn is _model_fn:
    kwargs['train_distribute'] = distribute.ElasticAverageStrategy(
        communication_period=2, count_steps='local', rho=0.0)
  _train(tmp_path, model_fn, steps=5, **kwargs)
  # One in two steps; the last line is that of the end.
  exchanging = [e[2] for e in _events(tmp_path, 'exchanging')]
  assert [e['num_exchanges'] for e in exchanging] == [0, 1, 1, 2, 2, 2]
  # From 4 the copy goes to 2 while the centre stays; reading takes time.
  assert exchanging[0]['distance'] == pytest.approx(2.0)


def test_drops_are_counted(tmp_path, behavior):
  _train(tmp_path, estimator.drop_stale_gradients(_model_fn, staleness=0),
         steps=3)
  assert [(e[2]['num_dropped'], e[2]['num_applied'])
          for e in _events(tmp_path, 'dropping')] == [
              (0, 1), (0, 2), (0, 3), (0, 3)]


def test_a_program_may_train_twice(tmp_path):
  for steps in (2, 4):
    _train(tmp_path, estimator.drop_stale_gradients(_model_fn, staleness=0),
           steps=steps)
  events = event_files.read_file(
      event_files.path_of(tmp_path, 'chief:0')).events
  assert len(record.by_process(events)) == 1
  assert (events[-1].name, events[-1].kind) == ('training', 'end')
  assert record.is_done(events[-1])
  assert {event.session for event in events} == {1}
  # The next process begins the next session.
  assert event_log.EventLog(tmp_path, 'chief:0', pid=1).session == 2


@pytest.mark.parametrize('has_strategy', [False, True])
def test_staleness_is_that_of_the_step(tmp_path, behavior, has_strategy):
  model_fn, kwargs = _model_fn, {}
  if has_strategy:
    kwargs['train_distribute'] = distribute.DropStaleGradientStrategy(
        staleness=0)
  else:
    model_fn = estimator.drop_stale_gradients(_model_fn, staleness=0)
  _train(tmp_path, model_fn, steps=2, **kwargs)
  told = [e[2] for e in _events(tmp_path, 'dropping')]
  # The end is no step.
  assert [e.get('staleness') for e in told] == [0, 0, None]


def test_the_last_step_is_told_with_the_first(tmp_path):
  config = _config(tmp_path)
  hook = events_hook.EventsHook(config, max_steps=2)
  tf.estimator.Estimator(_model_fn, config=config).train(
      _input_fn, hooks=[hook], max_steps=2)
  assert [e[2].get('max_steps') for e in _events(tmp_path, 'training')] == [
      2, None]


@pytest.mark.parametrize('decorator', [
    lambda model_fn: estimator.elastic_average(
        model_fn, communication_period=2, rho=0.0),
    lambda model_fn: model_fn])
def test_the_unit_of_the_global_step_can_be_exchanges(tmp_path, decorator):
  model_fn, kwargs = decorator(_model_fn), {}
  if model_fn is _model_fn:
    kwargs['train_distribute'] = distribute.ElasticAverageStrategy(
        communication_period=2, rho=0.0)
  _train(tmp_path, model_fn, steps=2, **kwargs)
  told = [e[2].get('step_counts') for e in _events(tmp_path, 'training')]
  assert told[:2] == ['exchanges', None]


@pytest.mark.parametrize('num_ps, unit', [(0, 'rounds'), (1, 'batches')])
def test_the_unit_of_the_global_step_is_of_one_task_or_of_all(
    tmp_path, monkeypatch, num_ps, unit):
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': ports.make_cluster(1, num_ps),
      'task': {'type': 'chief', 'index': 0}}))
  with tf.Graph().as_default():
    step = tf1.train.create_global_step()
    hook = events_hook.EventsHook(_config(tmp_path))
    with tf1.train.SingularMonitoredSession([hook]) as session:
      session.run(step)
  assert _events(tmp_path, 'training')[0][2]['step_counts'] == unit


def test_a_session_that_is_made_anew_comes_back(tmp_path):
  with tf.Graph().as_default():
    step = tf1.train.create_global_step()
    hook = events_hook.EventsHook(_config(tmp_path))
    hook.begin()
    with tf1.Session() as session:
      session.run(step.initializer)
      for _ in range(2):
        hook.after_create_session(session, None)
  assert _events(tmp_path, 'coming_back') == [
      ('instant', 0, {'what': 'session', 'step': 0})]


def test_a_counter_that_has_no_value_yet_ends_no_training(tmp_path):
  with tf.Graph().as_default() as graph:
    step = tf1.train.create_global_step()
    counter = tf1.get_variable('late', initializer=0, trainable=False)
    per_graph.of(graph).add_count(counter, per_graph.DROPPED)
    advance = step.assign_add(0)
    hook = events_hook.EventsHook(_config(tmp_path), every_secs=1e-9)
    with tf1.train.MonitoredSession(
        tf1.train.ChiefSessionCreator(tf1.train.Scaffold(
            init_op=step.initializer, ready_op=tf.constant([], tf.string),
            ready_for_local_init_op=tf.constant([], tf.string))),
        hooks=[hook]) as session:
      session.run(advance)
      session.run(counter.initializer)
  assert len(_events(tmp_path, 'training')) == 3
  assert [e[2]['num_dropped'] for e in _events(tmp_path, 'dropping')] == [0, 0]


def test_lines_are_no_more_than_the_clock_says(tmp_path):
  config = _config(tmp_path)
  tf.estimator.Estimator(_model_fn, config=config).train(
      _input_fn, hooks=[events_hook.EventsHook(config, 3600.0)], max_steps=50)
  assert [e[:2] for e in _events(tmp_path, 'training')] == [
      ('begin', 1), ('end', 50)]


def test_the_log_of_the_recording_is_taken(tmp_path):
  with event_log.recording(tmp_path / 'run', 'worker:3'):
    _train(tmp_path / 'model', steps=1)
  assert not any(record.ENDS_TASK in details for _, _, details in _events(
      tmp_path / 'run', 'training', 'worker:3'))
  assert not event_files.events_dir(tmp_path / 'model').exists()


@pytest.mark.parametrize('job, name', [
    ('worker', 'worker:0'), ('ps', 'ps:0'), ('evaluator', 'evaluator:0')])
def test_the_task_has_its_name(monkeypatch, job, name):
  assert events_hook.task_name(tf.estimator.RunConfig()) == 'chief:0'
  monkeypatch.setenv('TF_CONFIG', json.dumps(
      {'cluster': ports.make_cluster(1, 1), 'task': {'type': job, 'index': 0}}))
  assert events_hook.task_name(tf.estimator.RunConfig()) == name


def test_a_directory_is_needed():
  # Without one, no event was written, and no message said so.
  with pytest.raises(ValueError, match='name a model_dir.*Received.*None'):
    events_hook.EventsHook(tf.estimator.RunConfig())


def test_seconds_must_be_positive():
  with pytest.raises(ValueError, match='must be positive'):
    events_hook.EventsHook(tf.estimator.RunConfig(), 0)
