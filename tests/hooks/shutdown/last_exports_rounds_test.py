# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of an evaluator beside a chief that saves, deletes and ends."""

import json
import shutil

import pytest
import tensorflow as tf

from tests.helpers import readonly
from tfplugin import distribute
from tfplugin import estimator as estimator_lib
from tfplugin.bin.processes import ports
from tfplugin.estimator import cluster_training
from tfplugin.hooks.shutdown import chief_report

tf1 = tf.compat.v1


def _model_fn(features, labels, mode):
  """w = the global step."""
  del labels
  w = tf1.get_variable('w', initializer=0.0)
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.EstimatorSpec(mode, {'w': w + 0 * features})
  return tf.estimator.EstimatorSpec(
      mode, loss=w, train_op=tf.group(
          w.assign_add(1.0), tf1.train.get_global_step().assign_add(1)))


def _data():
  return tf.data.Dataset.from_tensors(([1.0], [1.0]))


def _receive():
  x = tf1.placeholder(tf.float32, [None])
  return tf.estimator.export.TensorServingInputReceiver(x, x)


_RULES = {'w': []}
DECORATORS = {
    'none': lambda model_fn: model_fn,
    'elastic': estimator_lib.elastic_average(),
    'drop stale': estimator_lib.drop_stale_gradients(staleness=3),
    'clip': estimator_lib.clip_variables(rules=_RULES, max_norm=1.0),
    'towers': estimator_lib.replicate_model_fn(devices=['/cpu:0']),
    'shards': estimator_lib.cross_shard(devices=['/cpu:0']),
}
STRATEGIES = {
    'elastic strategy': distribute.ElasticAverageStrategy,
    'drop stale strategy': lambda: distribute.DropStaleGradientStrategy(
        staleness=3),
    'clip strategy': lambda: distribute.VariableClippingStrategy(
        distribute.DropStaleGradientStrategy(staleness=3), _RULES, 1.0),
    'tower strategy': lambda: distribute.TowerStrategy(['/cpu:0']),
    'shard strategy': lambda: distribute.CrossShardStrategy(['/cpu:0']),
}
FORMS = [*DECORATORS, *STRATEGIES]
# The others have no parameter servers; the chief of towers is alone.
_CLUSTERS = {'tower strategy': (0, 0), 'shard strategy': (1, 0)}


def _estimator(model_dir, form='none'):
  return tf.estimator.Estimator(
      DECORATORS.get(form, DECORATORS['none'])(_model_fn), str(model_dir),
      tf.estimator.RunConfig(
          save_checkpoints_steps=1, keep_checkpoint_max=1,
          train_distribute=STRATEGIES[form]() if form in STRATEGIES else None))


class _Chief:
  """What a chief does to the model_dir while the evaluator reads it."""

  def __init__(self, tmp_path, monkeypatch, form='none'):
    monkeypatch.delenv('TF_CONFIG', raising=False)
    self.model_dir, self._saved = tmp_path / 'model', {}
    for step in (3, 5):
      estimator = _estimator(tmp_path / f'{step}')
      estimator.train(lambda: _data().repeat(), max_steps=step)
      self._saved[step] = tmp_path / f'{step}'
    self.save(3)
    self.cluster = ports.make_cluster(*_CLUSTERS.get(form, (1, 1)))
    monkeypatch.setenv('TF_CONFIG', json.dumps({
        'cluster': self.cluster,
        'task': {'type': 'evaluator', 'index': 0}}))

  def save(self, step):
    """Saves, and deletes what was saved before, as `keep_checkpoint_max=1`."""
    self.model_dir.mkdir(exist_ok=True)
    for path in self.model_dir.glob('model.ckpt-*'):
      path.unlink()
    for path in self._saved[step].glob('model.ckpt-*'):
      shutil.copy(path, self.model_dir)
    shutil.copy(self._saved[step] / 'checkpoint', self.model_dir)

  def report(self):
    chief_report.write(str(self.model_dir))


def _evaluate(chief, acts, exporter, max_steps=None, form='none',
              contact_limit_secs=30.0):
  """Evaluates; `acts` are done when an input is asked for, one each time."""
  def input_fn():
    if acts:
      acts.pop(0)()
    return _data()

  cluster_training.train_and_evaluate(
      _estimator(chief.model_dir, form),
      tf.estimator.TrainSpec(_data, max_steps=max_steps),
      tf.estimator.EvalSpec(input_fn, steps=1, start_delay_secs=0,
                            throttle_secs=0, exporters=exporter),
      contact_limit_secs=contact_limit_secs)


def _exported(chief):
  return [float(tf.train.load_checkpoint(
      str(path / 'variables/variables')).get_tensor('w'))
          for path in sorted((chief.model_dir / 'export/e').iterdir())]


def _steps_evaluated(chief):
  return [event.step for path in (chief.model_dir / 'eval').glob('events*')
          for event in tf1.train.summary_iterator(str(path))
          if any(value.tag == 'loss' for value in event.summary.value)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize('form', FORMS)
def test_a_checkpoint_that_is_deleted_is_no_failure(
    form, tmp_path, monkeypatch, caplog):
  chief = _Chief(tmp_path, monkeypatch, form)

  def go_on():
    chief.save(5)

  _evaluate(chief, [go_on, chief.report],
            tf.estimator.FinalExporter('e', _receive), form=form)
  assert 'model.ckpt-3 while it was evaluated' in caplog.text
  assert _steps_evaluated(chief) == [5]
  assert _exported(chief) == [5.0]


def test_a_checkpoint_that_is_saved_between_two_looks_may_be_deleted(
    tmp_path, monkeypatch):
  """Its deletion is noticed although there was none at the first look."""
  chief = _Chief(tmp_path, monkeypatch)
  shutil.rmtree(chief.model_dir)
  newest, acts = tf.estimator.Estimator.latest_checkpoint, [
      lambda: chief.save(3)]

  def newest_before_the_chief_saves(self):
    found = newest(self)
    if acts:
      acts.pop()()
    return found

  monkeypatch.setattr(tf.estimator.Estimator, 'latest_checkpoint',
                      newest_before_the_chief_saves)
  _evaluate(chief, [lambda: chief.save(5), chief.report],
            tf.estimator.FinalExporter('e', _receive))
  assert _steps_evaluated(chief) == [5]
  assert _exported(chief) == [5.0]


class _SlowExporter(tf.estimator.FinalExporter):
  """While it exports for the first time the chief saves anew."""

  def __init__(self, chief):
    super().__init__('e', _receive)
    self._chief, self._is_first = chief, True

  def export(self, estimator, export_path, checkpoint_path, eval_result,
             is_the_final_export):
    if self._is_first:
      self._is_first = False
      tf.io.gfile.makedirs(f'{export_path}/temp-1234')
      self._chief.save(5)
      self._chief.report()
      is_the_final_export = True
    return super().export(estimator, export_path, checkpoint_path, eval_result,
                          is_the_final_export)


@pytest.mark.sampled(3)
@pytest.mark.parametrize('form', FORMS)
def test_a_half_written_export_is_removed(
    form, tmp_path, monkeypatch, caplog):
  chief = _Chief(tmp_path, monkeypatch, form)
  _evaluate(chief, [], _SlowExporter(chief), form=form)
  assert 'model.ckpt-3 while it was evaluated' in caplog.text
  assert _steps_evaluated(chief) == [3, 5]
  assert _exported(chief) == [5.0]


def test_an_evaluation_waits_while_the_directory_is_read_only(
    tmp_path, monkeypatch, caplog):
  chief = _Chief(tmp_path, monkeypatch)
  readonly.make(chief.model_dir, 3.0)
  _evaluate(chief, [chief.report], tf.estimator.FinalExporter('e', _receive))
  assert 'The evaluator waits to write in' in caplog.text
  assert _steps_evaluated(chief) == [3]
  assert _exported(chief) == [3.0]


def test_an_error_of_the_model_is_one(tmp_path, monkeypatch):
  chief = _Chief(tmp_path, monkeypatch)

  def fail():
    raise ValueError('no such file')

  with pytest.raises(ValueError, match='no such file'):
    _evaluate(chief, [fail], tf.estimator.FinalExporter('e', _receive))


class _EndingExporter(tf.estimator.FinalExporter):
  """After the first round the chief saves its last checkpoint."""

  def __init__(self, chief):
    super().__init__('e', _receive)
    self._chief, self._is_first = chief, True

  def export(self, *args, **kwargs):
    result = super().export(*args, **kwargs)
    if self._is_first:
      self._is_first = False
      self._chief.save(5)
      self._chief.report()
    return result


def test_a_checkpoint_at_max_steps_is_not_the_last_before_the_chief_ends(
    tmp_path, monkeypatch):
  """The chief, which listens, waits for a worker's last steps."""
  chief = _Chief(tmp_path, monkeypatch)
  server = tf.distribute.Server(chief.cluster, job_name='chief', task_index=0)
  _evaluate(chief, [], _EndingExporter(chief), max_steps=3)
  assert _steps_evaluated(chief) == [3, 5]
  assert _exported(chief) == [5.0]
  del server


def test_a_chief_that_has_gone_after_max_steps_is_not_waited_for(
    tmp_path, monkeypatch):
  chief = _Chief(tmp_path, monkeypatch)
  _evaluate(chief, [], tf.estimator.FinalExporter('e', _receive), max_steps=3)
  assert _exported(chief) == [3.0]


class _EveryExporter(tf.estimator.Exporter):
  """Exports in each round; notes whether it was told that it is the last."""

  name = 'e'

  def __init__(self):
    self.were_last = []

  def export(self, estimator, export_path, checkpoint_path, eval_result,
             is_the_final_export):
    self.were_last.append(is_the_final_export)
    return export_path


def test_an_exporter_that_has_written_does_not_write_the_same_again(
    tmp_path, monkeypatch):
  chief = _Chief(tmp_path, monkeypatch)
  exporter = _EveryExporter()
  # The chief ends while its checkpoint is evaluated.
  _evaluate(chief, [chief.report], exporter)
  assert _steps_evaluated(chief) == [3]
  assert exporter.were_last == [False]


@pytest.mark.parametrize('session, limit', [('4', 10.0**6), ('', 3.0)])
@pytest.mark.parametrize('form', ['none', 'drop stale strategy',
                                  'tower strategy'])
def test_an_evaluator_that_restarts_after_the_end_exports(
    form, session, limit, tmp_path, monkeypatch):
  """It was preempted in its last evaluation; the input had ended."""
  monkeypatch.setenv('TFPLUGIN_SESSION', session)
  chief = _Chief(tmp_path, monkeypatch, form)
  chief.report()
  _evaluate(chief, [], tf.estimator.FinalExporter('e', _receive), form=form,
            contact_limit_secs=limit)
  assert _steps_evaluated(chief) == [3]
  assert _exported(chief) == [3.0]
