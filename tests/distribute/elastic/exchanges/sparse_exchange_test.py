# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Only touched rows are exchanged, by the optimizer and the decorator, too."""

from __future__ import annotations

import contextlib
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import decorated_models
from tests.optimizers import elastic_graphs
from tfplugin import estimator
from tfplugin.distribute.elastic import elastic_settings

tf1 = tf.compat.v1

_START = np.ones([3, 1], np.float32)
_SETTINGS = dict(communication_period=2, moving_rate=0.5, rho=0.0)


def _loss(table, ids):
  """Its gradient is 1 for each time that a row is asked for."""
  return tf.reduce_sum(tf.gather(table, ids))


class _Worker:
  """A graph and its session; one worker, whose centre others write, too."""

  def __init__(self, session, train_op, ids, copy, center):
    self.session, self._train_op, self._ids = session, train_op, ids
    self._copy, self._center = copy, center
    self._value = tf1.placeholder(tf.float32, _START.shape)
    self._set = tf1.assign(center, self._value).op

  def set_row(self, row, value):
    """What another worker does to the centre."""
    whole = self.center()
    whole[row] = value
    self.session.run(self._set, {self._value: whole})

  def step(self, ids, number=2):
    for _ in range(number):
      self.session.run(self._train_op, {self._ids: ids})

  def copy(self):
    return self.session.run(self._copy)

  def center(self):
    return self.session.run(self._center)


@contextlib.contextmanager
def _by_optimizer(use_resource=None, **settings):
  with tf.Graph().as_default():
    getter = elastic_graphs.Getter('')
    table = elastic_graphs.variable(getter, value=_START,
                                    use_resource=use_resource)
    ids = tf1.placeholder(tf.int64, [None])
    optimizer = elastic_graphs.make_optimizer(
        getter, elastic_graphs.sgd(0.1), **{
            **_SETTINGS, 'sparse_exchange': True, **settings})
    train_op = optimizer.minimize(_loss(table, ids))
    assert 'touched_rows' in {v.op.name for v in optimizer.variables()}
    with elastic_graphs.session(optimizer) as session:
      yield _Worker(session, train_op, ids, table.read_value(),
                    elastic_graphs.center(getter, table))


@contextlib.contextmanager
def _by_decorator(losses=(_loss,), **settings):

  @estimator.elastic_average(**{
      **_SETTINGS, 'sparse_exchange': True, **settings})
  def model_fn(features, labels, mode):
    del labels
    table = tf1.get_variable('table', initializer=_START)
    losses_here = [loss(table, features) for loss in losses]
    return tf.estimator.EstimatorSpec(
        mode, loss=losses_here[0], train_op=tf.group(*[
            elastic_graphs.sgd(0.1).minimize(
                loss, tf1.train.get_global_step()) for loss in losses_here]))

  with tf.Graph().as_default():
    tf1.train.create_global_step()
    ids = tf1.placeholder(tf.int64, [None])
    spec = decorated_models.call(model_fn, tf.estimator.ModeKeys.TRAIN, ids)
    copy, = [v for v in tf1.local_variables() if hasattr(v, 'center')]
    worker = _Worker(None, spec.train_op, ids, copy.read_value(), copy.center)
    with tf1.train.SingularMonitoredSession(
        [*spec.training_hooks], spec.scaffold) as session:
      worker.session = session.raw_session()
      yield worker


_FORMS = {
    'optimizer': _by_optimizer,
    'optimizer, references': functools.partial(
        _by_optimizer, use_resource=False),
    'optimizer, float16': functools.partial(
        _by_optimizer, exchange_dtype='float16'),
    'decorator': _by_decorator,
}


@pytest.mark.parametrize('form', _FORMS)
def test_a_row_moves_when_it_was_touched(behavior, form):
  with _FORMS[form]() as worker:
    worker.step([0, 0])
    # The id is there twice: 1 -> .8 -> .6, and both move by .2.
    np.testing.assert_allclose(worker.center()[:, 0], [.8, 1, 1], rtol=1e-3)
    np.testing.assert_allclose(worker.copy()[:, 0], [.8, 1, 1], rtol=1e-3)
    worker.set_row(0, 7.0)
    worker.set_row(1, 5.0)
    # Row 1: 1 -> .9 -> .8, half of the way to 5. Row 0 has had its exchange.
    worker.step([1])
    np.testing.assert_allclose(worker.copy()[:, 0], [.8, 2.9, 1], rtol=1e-3)
    np.testing.assert_allclose(worker.center()[:, 0], [7, 2.9, 1], rtol=1e-3)
    # Touched in the one step, exchanged after the other.
    worker.step([0], 1)
    worker.step([2], 1)
    np.testing.assert_allclose(
        worker.copy()[:, 0], [(.7 + 7) / 2, 2.9, .95], rtol=1e-3)
    np.testing.assert_allclose(
        worker.center()[:, 0], [(.7 + 7) / 2, 2.9, .95], rtol=1e-3)


def _dense_loss(table, ids):
  """Its gradient is 1 in each row."""
  del ids
  return tf.reduce_sum(table)


@pytest.mark.parametrize('losses', [(_loss, _dense_loss), (_dense_loss, _loss)])
def test_all_rows_move_if_one_of_two_gradients_is_dense(behavior, losses):
  with _by_decorator(losses) as worker:
    worker.step([0])
    # Row 0: 1 -> .8 -> .6, and others 1 -> .9 -> .8; half of the way back.
    for values in (worker.center(), worker.copy()):
      np.testing.assert_allclose(values[:, 0], [.8, .9, .9], rtol=1e-6)


def test_all_rows_move_if_another_optimizers_gradient_is_dense(behavior):
  with tf.Graph().as_default():
    getter = elastic_graphs.Getter('')
    table = elastic_graphs.variable(getter, value=_START)
    optimizer = elastic_graphs.make_optimizer(
        getter, elastic_graphs.sgd(0.1), sparse_exchange=True, moving_rate=0.5)
    train_ops = [optimizer.minimize(loss(table, [0]))
                 for loss in (_loss, _dense_loss)]
    with elastic_graphs.session(optimizer) as session:
      # 1 -> .9, half of the way back; then each row moves by .1 and half.
      for train_op, expected in zip(train_ops, ([.95, 1, 1], [.9, .95, .95])):
        session.run(train_op)
        np.testing.assert_allclose(session.run(
            elastic_graphs.center(getter, table))[:, 0], expected, rtol=1e-6)


def _other_loss(table, ids):
  """Its gradient is 1 in the row after each that is asked for."""
  return tf.reduce_sum(tf.gather(table, ids + 1))


@pytest.mark.parametrize('form', ['optimizer', 'decorator'])
def test_with_elastic_first_a_row_moves_after_it_was_touched(behavior, form):
  settings = {'update_order': 'elastic_first', 'communication_period': 1}
  with _FORMS[form](**settings) as worker:
    for ids, rows in (
        ([0], [1, 1, 1]), ([2], [.95, 1, 1]), ([2], [.95, 1, .95])):
      worker.step(ids, 1)
      np.testing.assert_allclose(worker.center()[:, 0], rows, rtol=1e-6)


def test_with_elastic_first_rows_of_two_calls_move(behavior):
  with _by_decorator((_loss, _other_loss), update_order='elastic_first',
                     communication_period=1) as worker:
    for row in (1, .95, .9):  # The copy .9; .95 - .1; .9 - .1.
      worker.step([0], 1)
      np.testing.assert_allclose(
          worker.center()[:, 0], [row, row, 1], rtol=1e-6)


@pytest.mark.parametrize('form', ['optimizer', 'decorator'])
def test_a_row_of_a_skipped_exchange_moves_in_the_next(behavior, form):
  with _FORMS[form](on_nonfinite='drop', communication_period=1) as worker:
    worker.set_row(0, np.nan)
    worker.step([0], 1)
    worker.set_row(0, 1.0)
    np.testing.assert_allclose(worker.copy()[:, 0], [.9, 1, 1])
    worker.step([2], 1)
    for values in (worker.center(), worker.copy()):
      np.testing.assert_allclose(values[:, 0], [.95, 1, .95], rtol=1e-6)


def test_a_row_that_another_call_changes_during_an_exchange_moves_later(
    behavior):
  del behavior
  with tf.Graph().as_default():
    getter = elastic_graphs.Getter('')
    table = elastic_graphs.variable(getter, value=_START)
    optimizer = elastic_graphs.make_optimizer(
        getter, elastic_graphs.sgd(0.1), sparse_exchange=True, moving_rate=0.5)
    trains = [optimizer.minimize(_loss(table, [0]))]
    with tf1.control_dependencies(trains):
      values = tf.identity(tf.ones([1, 1]))
    # The row is known before the first exchange, and changes after it.
    trains.append(optimizer.apply_gradients([(tf.IndexedSlices(
        values, tf.constant([1]), tf.constant([3, 1])), table)]))
    with elastic_graphs.session(optimizer) as session:
      # Row 1: the copy .9; (.9 + 1) / 2 - .1; (.85 + .95) / 2 - .1.
      for rows in ([.95, 1, 1], [.9, .95, 1], [.85, .9, 1]):
        session.run(trains)
        np.testing.assert_allclose(session.run(
            elastic_graphs.center(getter, table))[:, 0], rows, rtol=1e-6)


@pytest.mark.parametrize('rho', [0.1, None])
def test_a_penalty_pulls_at_all_rows(rho):
  with pytest.raises(ValueError, match=(
      r'`rho` must be 0\.0 with sparse_exchange=True: .* '
      f'Received: {rho}. Pass 0.0.')):
    elastic_settings.ElasticSettings(rho=rho, sparse_exchange=True)


@pytest.mark.parametrize('is_sparse', [False, True])
def test_it_is_said_where_no_gradient_is_sparse(caplog, is_sparse):
  with tf.Graph().as_default():
    getter = elastic_graphs.Getter('')
    table = elastic_graphs.variable(getter, value=_START)
    elastic_graphs.make_optimizer(getter, sparse_exchange=True).minimize(
        _loss(table, [0]) if is_sparse else tf.reduce_sum(table * table))
  said = [record.getMessage() for record in caplog.records
          if '`sparse_exchange`' in record.getMessage()]
  assert len(said) == (not is_sparse)
  assert all('no gradient of this step is sparse' in line for line in said)
