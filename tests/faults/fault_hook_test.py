# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of faults that a task brings upon itself."""

import time
import types

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import distribute
from tfplugin import estimator
from tfplugin.events import event_files
from tfplugin.events import event_log
from tfplugin.events import process
from tfplugin.faults import acts
from tfplugin.faults import fault_hook
from tfplugin.faults import language

tf1 = tf.compat.v1


def _model_fn(features, labels, mode):
  del features, labels
  weight = tf1.get_variable('weight', initializer=4.0)
  loss = tf.square(weight)
  train_op = tf1.train.GradientDescentOptimizer(0.25).minimize(
      loss, global_step=tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def _train(tmp_path, faults='', steps=4, run='run', monkeypatch=None,
           model_fn=_model_fn, hooks=(), **kwargs):
  def input_fn():
    return tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat()

  monkeypatch.setenv(process.FAULTS_VARIABLE, faults)
  monkeypatch.setenv(language.RUN_VARIABLE, run)
  config = tf.estimator.RunConfig(str(tmp_path), save_checkpoints_steps=2,
                                  **kwargs)
  estimator.train_and_evaluate(
      tf.estimator.Estimator(model_fn, config=config),
      tf.estimator.TrainSpec(input_fn, max_steps=steps, hooks=hooks),
      tf.estimator.EvalSpec(input_fn, steps=1, throttle_secs=0))


def _injected(tmp_path):
  events = event_files.read_file(
      event_files.path_of(tmp_path, 'chief:0')).events
  return [e for e in events if e.name == 'injecting']


def _saved_step(tmp_path):
  return tf.train.load_checkpoint(str(tmp_path)).get_tensor('global_step')


@pytest.mark.parametrize('phase, saved, told', [
    ('before the first step', 0, None), ('at step 3', 2, 3),
    ('while saving after step 2', 0, 2), ('at the end', 4, None)])
def test_an_exception_comes_once_in_its_phase(tmp_path, monkeypatch, phase,
                                              saved, told):
  text = f'raise chief:0 {phase}'
  with pytest.raises(acts.InjectedError, match=text):
    _train(tmp_path, text, monkeypatch=monkeypatch)
  assert _saved_step(tmp_path) == saved
  event, = _injected(tmp_path)
  assert (event.details['fault'], event.step) == (text, told)
  # The same run goes on; in another run the fault comes again.
  _train(tmp_path, text, steps=6, monkeypatch=monkeypatch)
  assert _saved_step(tmp_path) == 6
  with pytest.raises(acts.InjectedError):
    _train(tmp_path, text, steps=8, run='other', monkeypatch=monkeypatch)


@pytest.mark.parametrize('kind', ['plain', 'decorator', 'strategy'])
def test_a_variable_becomes_nan(tmp_path, monkeypatch, behavior, kind):
  class Weights(tf1.train.SessionRunHook):
    def __init__(self):
      self.values = []

    def begin(self):
      self._weight = tf1.trainable_variables()[0].read_value()

    def before_run(self, run_context):
      self.values.append(run_context.session.run(self._weight))

  kwargs = {}
  if kind == 'decorator':
    kwargs['model_fn'] = estimator.elastic_average(
        _model_fn, communication_period=10, rho=0.0, count_steps='local')
  if kind == 'strategy':
    kwargs['train_distribute'] = distribute.DropStaleGradientStrategy(
        staleness=1)
  weights = Weights()
  with pytest.raises(tf1.train.NanLossDuringTrainingError):
    _train(tmp_path, 'nan chief:0 at step 2', monkeypatch=monkeypatch,
           hooks=[weights], **kwargs)
  # 4, 2 and, after the second step, NaN.
  assert [float(v) for v in weights.values[:2]] == [4.0, 2.0]
  assert np.isnan(weights.values[2])


def test_a_slow_task_waits_before_its_steps(tmp_path, monkeypatch):
  slept = []
  monkeypatch.setattr(time, 'sleep', slept.append)
  _train(tmp_path, 'slow chief:0 by 0.25 s at step 2', monkeypatch=monkeypatch)
  assert slept.count(0.25) == 2


def test_each_further_save_is_slow(tmp_path, monkeypatch):
  slept = []
  monkeypatch.setattr(time, 'sleep', slept.append)
  _train(tmp_path, 'slow_save chief:0 by 0.25 s at step 1',
         monkeypatch=monkeypatch)
  assert slept.count(0.25) == 2  # At steps 2 and 4.


def test_events_do_not_follow_a_clock_that_is_set_back(tmp_path, monkeypatch):
  monkeypatch.setattr(time, 'time', time.time)  # As before, after the test.
  before = time.time()
  _train(tmp_path, 'clock chief:0 by -3600 s at step 2',
         monkeypatch=monkeypatch)
  assert time.time() < before - 3000
  times = [e.time for e in event_files.read_file(
      event_files.path_of(tmp_path, 'chief:0')).events]
  assert times == sorted(times)
  assert before - 60 < times[0] and times[-1] < times[0] + 600


def _hook(tmp_path, text, task='chief:0'):
  log = event_log.EventLog(tmp_path, task)
  return fault_hook.FaultHook(language.parse(text), log)


@pytest.mark.parametrize('task, mine', [
    ('chief:0', ['kill chief:0 at step 1', 'kill ps:0 at step 1',
                 'kill evaluator:0 at step 1']),
    ('worker:0', ['kill worker:0 at step 1']), ('worker:1', [])])
def test_whose_a_fault_is(tmp_path, task, mine):
  hook = _hook(tmp_path, '; '.join(
      f'kill {victim} at step 1'
      for victim in ('chief:0', 'worker:0', 'ps:0', 'evaluator:0')), task)
  assert [str(fault) for fault in hook._waiting] == mine


@pytest.mark.parametrize('period, first', [(3, 2), (None, 0)])
def test_an_exchange_is_met(tmp_path, monkeypatch, period, first):
  sent = []
  monkeypatch.setattr(acts, 'send', lambda *args: sent.append(args))
  # At once, where a thread would wait for half of a step.
  monkeypatch.setattr(
      fault_hook.threading, 'Timer', lambda unused_secs, bring, args: (
          types.SimpleNamespace(start=lambda: bring(*args))))
  model_fn = _model_fn if period is None else estimator.elastic_average(
      _model_fn, communication_period=period, rho=0.0, count_steps='local')
  _train(tmp_path, 'kill chief:0 while exchanging', model_fn=model_fn,
         monkeypatch=monkeypatch)
  assert len(sent) == 1
  assert _injected(tmp_path)[0].step == first


def test_without_a_memory_there_are_no_faults():
  with pytest.raises(ValueError, match='Faults need a `model_dir`'):
    _hook('gs://bucket', 'kill chief:0 at step 1')
