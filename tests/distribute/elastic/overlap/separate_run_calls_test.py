# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Several calls of optimizers in one session step, with runs of their own."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.optimizers import elastic_graphs
from tfplugin.testing import clusters

tf1 = tf.compat.v1


@pytest.mark.parametrize('settings', [
    {}, {'overlap': True}, {'exchange_dtype': 'float16'},
    {'on_nonfinite': 'drop'}], ids=str)
def test_statistics_are_exchanged_once_in_a_session_step(behavior, settings):
  del behavior
  cluster = clusters.in_process_cluster(num_workers=1)
  with tf.Graph().as_default(), tf1.device(cluster.device_setter(0)):
    step = tf1.train.create_global_step()
    getter = elastic_graphs.Getter('/job:worker/task:0')
    with getter.scope():
      a, b = (tf1.get_variable(name, initializer=0.0) for name in 'ab')
      mean = tf1.get_variable('mean', initializer=0.0, trainable=False)
    update = mean.assign(tf1.placeholder_with_default(4.0, [])).op
    tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
    optimizer = elastic_graphs.make_optimizer(
        getter, communication_period=2, moving_rate=0.25, **settings)
    with tf1.control_dependencies([update]):
      trains = [optimizer.minimize(-a, step, [a]),
                optimizer.minimize(-b, None, [b])]
    hook = optimizer.make_session_run_hook(True, 0)
    centers = [getter.pair_of(v).center for v in (mean, a, b)]
    assert len(optimizer.runs) == 2
    with tf1.train.MonitoredTrainingSession(
        cluster.target('worker', 0), hooks=[hook], save_checkpoint_secs=None,
        save_summaries_steps=None, log_step_count_steps=None) as session:
      for _ in range(4):
        session.run(trains)
    # At each of two exchanges the copy is 4.
    with cluster.session(0, tf1.get_default_graph()) as session:
      mean_center, *others = session.run(centers)
  if 'overlap' in settings:  # 3 if the first difference arrives as late.
    assert mean_center in (1.5, 1.75)
    return
  # A quarter of 4 - 0 and of 4 - 1; of 2 - 0 and of 3.5 - 0.5.
  assert [mean_center, *others] == [1.75, 1.25, 1.25]


@pytest.mark.parametrize('settings', [
    {}, {'overlap': True}, {'exchange_dtype': 'float16'},
    {'on_nonfinite': 'drop'}], ids=str)
def test_a_variable_of_two_calls_is_exchanged_once_in_a_session_step(
    behavior, settings):
  del behavior
  cluster = clusters.in_process_cluster(num_workers=1)
  with tf.Graph().as_default(), tf1.device(cluster.device_setter(0)):
    tf1.train.create_global_step()
    getter = elastic_graphs.Getter('/job:worker/task:0')
    with getter.scope():
      w = tf1.get_variable('w', initializer=0.0)
    optimizer = elastic_graphs.make_optimizer(
        getter, communication_period=2, moving_rate=0.25, **settings)
    trains = [optimizer.minimize(-1.0 * w)]
    with tf1.control_dependencies(trains):
      trains.append(optimizer.minimize(-2.0 * w))
    center = getter.pair_of(w).center
    with tf1.train.MonitoredTrainingSession(
        cluster.target('worker', 0), save_checkpoint_secs=None,
        hooks=[optimizer.make_session_run_hook(True, 0)],
        save_summaries_steps=None, log_step_count_steps=None) as session:
      for _ in range(4):
        session.run(trains)
    # 3 + 1, of which a quarter moves; 3 + 2 + 3 + 1 - 1 likewise.
    with cluster.session(0, tf1.get_default_graph()) as session:
      assert session.run(center) == 3.0


@pytest.mark.parametrize('settings', [
    {}, {'exchange_dtype': 'int8'}, {'on_nonfinite': 'drop'}], ids=str)
def test_session_steps_of_one_call_and_of_two_exchange_once(behavior, settings):
  del behavior
  cluster = clusters.in_process_cluster(num_workers=1)
  with tf.Graph().as_default(), tf1.device(cluster.device_setter(0)):
    step = tf1.train.create_global_step()
    getter = elastic_graphs.Getter('/job:worker/task:0')
    w = elastic_graphs.variable(getter, 'w', 0.0)
    optimizer = elastic_graphs.make_optimizer(
        getter, communication_period=2, moving_rate=0.25, **settings)
    trains = [optimizer.minimize(-1.0 * w, step)]
    with tf1.control_dependencies(trains):
      trains.append(optimizer.minimize(-2.0 * w))
    hook = optimizer.make_session_run_hook(True, 0)
    assert len(optimizer.runs) == 2
    local = center = 0.0
    seen = [w, getter.pair_of(w).center, *(
        [getter.pair_of(w).feedback] if 'exchange_dtype' in settings else [])]
    with tf1.train.MonitoredTrainingSession(
        cluster.target('worker', 0), hooks=[hook], save_checkpoint_secs=None,
        save_summaries_steps=None, log_step_count_steps=None) as session:
      steps = [0, 0]
      for last in (0, 1, 0, 1, 1, 0, 1):  # The second call waits for the first.
        session.run(trains[last])
        moved = False
        for call in range(last + 1):
          local += 1 + call
          steps[call] += 1
          if steps[call] % 2 == 0 and not moved:
            difference, moved = (local - center) / 4, True
            local, center = local - difference, center + difference
      values = session.run_step_fn(
          lambda step_context: step_context.session.run(seen))
  assert values == pytest.approx([local, center, 0.0][:len(values)], rel=1e-5)
