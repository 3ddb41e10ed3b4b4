# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What TensorBoard's own server answers about a run that was written for it."""

from __future__ import annotations

import json
import sys
import types
from urllib import parse

import numpy as np
import pytest
import tensorflow as tf
from tensorboard import program
from werkzeug import test

from tests.report import hand_written
from tfplugin import estimator
from tfplugin.distribute import per_graph
from tfplugin.hooks import telemetry_hook
from tfplugin.hooks import tensorboard_hook
from tfplugin.report.reading import scalars

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


def _train(model_dir, model_fn=_model_fn, steps=5, **kwargs):
  """Trains by a function that brings no hook of its own; writes each step."""
  config = tf.estimator.RunConfig(str(model_dir), save_summary_steps=1)
  hook = tensorboard_hook.TensorBoardHook(config, every_secs=1e-9, **kwargs)
  tf.estimator.Estimator(model_fn, config=config).train(
      _input_fn, hooks=[hook], max_steps=steps)


class _Server:
  """TensorBoard's application, spoken to by its HTTP API."""

  def __init__(self, logdir):
    applications = []

    class Kept(program.TensorBoardServer):
      """Keeps the application, for which `serve_forever` would listen."""

      def __init__(self, application, unused_flags):
        applications.append(application)

      def serve_forever(self):
        pass

      def get_url(self):
        return ''

    board = program.TensorBoard(server_class=Kept)
    board.configure(argv=[
        'tensorboard', f'--logdir={logdir}', '--load_fast=false',
        '--reload_interval=0', '--reload_task=blocking'])
    board.launch()
    self._client = test.Client(applications[0])

  def get(self, path, **query):
    return self._answer(self._client.get(
        f'/data/plugin/{path}?{parse.urlencode(query)}'))

  def post(self, path, **body):
    return self._answer(self._client.post(f'/data/plugin/{path}', json=body))

  def points(self, tag, run='.'):
    """Returns step and value of each point."""
    return [(step, value) for _, step, value in self.get(
        'scalars/scalars', tag=tag, run=run)]

  def _answer(self, response):
    assert response.status_code == 200, response.get_data()
    return json.loads(response.get_data())


def _be_second_worker(monkeypatch, **other_jobs):
  cluster = {'chief': ['localhost:1'], 'worker': ['localhost:2', 'localhost:3']}
  monkeypatch.setenv('TF_CONFIG', json.dumps({
      'cluster': {**cluster, **other_jobs},
      'task': {'type': 'worker', 'index': 1}}))


def _train_graph(model_dir, steps=3, every_secs=1e-9, hooks=(),
                 later_hooks=()):
  """Trains a graph that has summaries, in a session of this process."""
  with tf.Graph().as_default():
    # TensorFlow reads a reference variable before, or beside, the addition.
    with tf1.variable_scope('', use_resource=True):
      step = tf1.train.create_global_step()
    with tf.control_dependencies([step.assign_add(1)]):
      loss = tf.cast(step.read_value(), tf.float32) * 2
    tf1.summary.scalar('loss', loss)
    tf1.summary.histogram('losses', loss)
    hook = tensorboard_hook.TensorBoardHook(
        tf.estimator.RunConfig(str(model_dir)), every_secs=every_secs)
    with tf1.train.SingularMonitoredSession(
        hooks=[*hooks, hook, *later_hooks]) as session:
      for _ in range(steps):
        session.run(loss)


def test_scalars_of_dropping_have_stable_tags(tmp_path, behavior):
  _train(tmp_path, estimator.drop_stale_gradients(_model_fn, staleness=0),
         steps=3)
  server = _Server(tmp_path)
  # The last step once more, at the end.
  assert server.points('staleness/num_applied') == [
      (1, 1), (2, 2), (3, 3), (3, 3)]
  assert server.points('staleness/num_dropped') == [
      (1, 0), (2, 0), (3, 0), (3, 0)]
  assert server.points('staleness/dropped_fraction')[-1] == (3, 0)
  rates = server.points('speed/steps_per_sec')
  assert [step for step, _ in rates] == [2, 3]
  assert all(rate > 0 for _, rate in rates)


def test_scalars_of_averaging_have_stable_tags(tmp_path, behavior):
  _train(tmp_path, estimator.elastic_average(
      _model_fn, communication_period=2, count_steps='local', rho=0.0), steps=4)
  assert _Server(tmp_path).points('elastic/num_exchanges') == [
      (1, 0), (2, 1), (3, 1), (4, 2), (4, 2)]


def test_the_fraction_is_that_of_both_counters(tmp_path):
  with tf.Graph().as_default() as graph:
    tf1.train.create_global_step()
    for name, value in (
        (per_graph.DROPPED, 1), (per_graph.APPLIED, 3)):
      per_graph.of(graph).add_count(
          tf1.get_variable(name, initializer=value, trainable=False), name)
    hook = tensorboard_hook.TensorBoardHook(
        tf.estimator.RunConfig(str(tmp_path)))
    with tf1.train.SingularMonitoredSession(hooks=[hook]) as session:
      session.run(tf1.train.get_global_step())
  assert set(_Server(tmp_path).points('staleness/dropped_fraction')) == {
      (0, 0.25)}


def test_a_worker_has_a_run_of_its_own_with_the_scalars_of_its_model(
    monkeypatch, tmp_path):
  _be_second_worker(monkeypatch, ps=['localhost:4'])
  _train_graph(tmp_path)
  server = _Server(tmp_path)
  assert set(server.get('scalars/tags')) == {'worker-1'}
  assert [value for _, value in server.points('loss', 'worker-1')] == [2, 4, 6]
  assert set(server.get('scalars/tags')['worker-1']) == {
      'loss', 'speed/steps_per_sec'}
  assert server.get('histograms/tags') == {}
  # It orders no page.
  assert server.get('custom_scalars/layout') == {}
  # The report finds them.
  assert scalars.by_task(scalars.read_tree(tmp_path), 'loss')[
      'worker:1'].values == [2, 4, 6]


def test_a_worker_writes_the_scalars_of_hooks_that_begin_later(
    behavior, monkeypatch, tmp_path):

  class Summarize(tf1.train.SessionRunHook):

    def begin(self):
      tf1.summary.scalar('half', 0.5)

  _be_second_worker(monkeypatch, ps=['localhost:4'])
  _train_graph(tmp_path, later_hooks=[Summarize()])
  server = _Server(tmp_path)
  assert {value for _, value in server.points('half', 'worker-1')} == {0.5}
  assert [value for _, value in server.points('loss', 'worker-1')] == [2, 4, 6]


def test_with_a_period_of_several_steps_each_point_has_all_curves(
    monkeypatch, tmp_path):
  clock = types.SimpleNamespace(now=0.0)
  monkeypatch.setattr(telemetry_hook, 'time', types.SimpleNamespace(
      monotonic=lambda: clock.now))

  class TakeASecond(tf1.train.SessionRunHook):

    def after_run(self, run_context, run_values):
      clock.now += 1

  _be_second_worker(monkeypatch, ps=['localhost:4'])
  _train_graph(tmp_path, 9, 2.5, [TakeASecond()])
  server = _Server(tmp_path)
  # Written at 1 s, 5 s and 9 s: a step that begins 2.5 s later is the fourth.
  assert server.points('loss', 'worker-1') == [(1, 2), (5, 10), (9, 18)]
  assert server.points('speed/steps_per_sec', 'worker-1') == [(5, 1), (9, 1)]


def test_where_workers_train_in_step_nobody_asks_for_summaries_alone(
    monkeypatch, tmp_path):
  _be_second_worker(monkeypatch)
  _train_graph(tmp_path)
  assert _Server(tmp_path).get('scalars/tags') == {
      'worker-1': {'speed/steps_per_sec': {
          'displayName': 'speed/steps_per_sec', 'description': ''}}}


def test_the_page_is_ordered_and_its_charts_find_their_tags(tmp_path):
  _train(tmp_path, steps=3)
  hand_written.write_scalars(tmp_path / 'worker-0', 'elastic_distance',
                             (1, 1, 0.5))
  hand_written.write_scalars(tmp_path, 'elastic_distance/dense', (1, 1, 0.5))
  server = _Server(tmp_path)
  layout = server.get('custom_scalars/layout')
  assert [category['title'] for category in layout['category']] == [
      'Speed', 'Loss', 'Staleness', 'Elastic averaging', 'Clipping']
  charts = {chart['title']: chart['multiline']['tag']
            for category in layout['category'] for chart in category['chart']}

  def found(chart, run):
    # As the page asks: for each expression of a chart, and each run.
    answers = [server.get('custom_scalars/scalars', tag=tag, run=run)
               for tag in charts[chart]]
    assert all(answer['regex_valid'] for answer in answers)
    return sorted(tag for answer in answers
                  for tag in answer['tag_to_events'])

  assert found('steps/s of each task', '.') == ['speed/steps_per_sec']
  assert found('loss of each task and of the saved model', '.') == ['loss']
  # A chart of one tag has no other that begins alike.
  assert found('distance from the centre', '.') == []
  assert found('distance from the centre', 'worker-0') == ['elastic_distance']
  assert found('distance of groups of variables', '.') == [
      'elastic_distance/dense']


def test_settings_are_shown_with_what_came_of_them(tmp_path):
  # TensorBoard 2.21 has no results of a run in the directory itself, `.`.
  model_dir = tmp_path / 'run'
  model_dir.mkdir()
  hand_written.write_options(model_dir, wrapper='drop_stale', staleness=2,
                             rho=None)
  _train(model_dir, steps=3, settings={
      'learning_rate': 0.25, 'staleness': 3, 'layers': [8, 4], 'nesterov': True,
      'size': np.int64(7), 'optimizer': tf1.train.AdamOptimizer})
  server = _Server(tmp_path)
  group, = server.post('hparams/session_groups', allowedStatuses=[
      'STATUS_SUCCESS'], startIndex=0, sliceSize=9,
      colParams=[])['sessionGroups']
  shown = group['hparams']
  assert shown.pop('tensorflow') == tf.__version__ and shown.pop('tfplugin')
  # What the program says goes before what it was started with.
  assert shown == {
      'wrapper': 'drop_stale', 'staleness': 3, 'learning_rate': 0.25,
      'layers': '8, 4', 'nesterov': True, 'size': 7, 'num_workers': 1,
      'num_ps': 0}
  session, = group['sessions']
  assert session['status'] == 'STATUS_SUCCESS'
  losses = [m['value'] for m in session['metricValues']
            if m['name'] == {'group': '', 'tag': 'loss'}]
  # w = 4, 2, 1: the loss of the third step.
  assert losses == [1.0]


def test_a_training_that_fails_has_not_succeeded(tmp_path):
  class Fail(tf1.train.SessionRunHook):

    def after_run(self, run_context, run_values):
      raise ValueError('no')

  config = tf.estimator.RunConfig(str(tmp_path))
  with pytest.raises(ValueError, match='no'):
    tf.estimator.Estimator(_model_fn, config=config).train(
        _input_fn, hooks=[tensorboard_hook.TensorBoardHook(config), Fail()])
  groups = _Server(tmp_path).post('hparams/session_groups', allowedStatuses=[
      'STATUS_SUCCESS'], startIndex=0, sliceSize=9, colParams=[])
  assert not groups.get('sessionGroups')


def test_without_the_package_the_scalars_are_written_and_it_is_named(
    tmp_path, monkeypatch, caplog):
  with monkeypatch.context() as patch:
    # Python's way to say that a module is not to be found.
    for name in [name for name in sys.modules
                 if name.partition('.')[0] == 'tensorboard']:
      patch.setitem(sys.modules, name, None)
    patch.setitem(sys.modules, 'tensorboard', None)
    _train(tmp_path, steps=2)
  assert 'python -m pip install tensorboard' in caplog.text
  server = _Server(tmp_path)
  assert 'speed/steps_per_sec' in server.get('scalars/tags')['.']
  assert server.get('custom_scalars/layout') == {}


def test_train_and_evaluate_brings_it_with_the_params(tmp_path):
  trained = tf.estimator.Estimator(
      lambda features, labels, mode, params: _model_fn(features, labels, mode),
      str(tmp_path), params={'hidden': 12})
  estimator.train_and_evaluate(
      trained, tf.estimator.TrainSpec(_input_fn, 2),
      tf.estimator.EvalSpec(_input_fn, steps=1))
  server = _Server(tmp_path)
  assert server.get('custom_scalars/layout')['category']
  assert server.post('hparams/session_groups', allowedStatuses=[
      'STATUS_SUCCESS'], startIndex=0, sliceSize=9, colParams=[])[
          'sessionGroups'][0]['hparams']['hidden'] == 12


@pytest.mark.parametrize('secs, error', [(0, ValueError), ('1', TypeError)])
def test_a_period_is_positive(secs, error):
  with pytest.raises(error, match='Received: '):
    tensorboard_hook.TensorBoardHook(
        tf.estimator.RunConfig('a_model_dir'), every_secs=secs)


def test_a_directory_is_needed():
  with pytest.raises(ValueError, match='`config` must name a model_dir'):
    tensorboard_hook.TensorBoardHook(tf.estimator.RunConfig())
