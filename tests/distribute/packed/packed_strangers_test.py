# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Unusual programs train as if nothing were packed, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.distribute.packed import packed_gathers
from tests.distribute.packed import packed_programs
from tests.distribute.packed import packed_recommenders
from tests.distribute.packed import packed_strangers
from tests.helpers import strategy_worker
from tfplugin import distribute
from tfplugin.distribute.packed import packing
from tfplugin.testing import clusters

tf1 = tf.compat.v1

_PROGRAMS = {**packed_strangers.PROGRAMS, **packed_recommenders.PROGRAMS,
             **packed_gathers.PROGRAMS}
_FORMS = ('plain, strategy', 'drop, strategy', 'clip, strategy',
          'drop, decorator', 'clip, decorator', 'drop, locked',
          'both, optimizer')


@pytest.fixture(scope='module', name='cluster')
def fixture_cluster():
  return clusters.in_process_cluster(num_workers=1, num_ps=2)


@pytest.mark.sampled(12)
@pytest.mark.parametrize('program', _PROGRAMS)
@pytest.mark.parametrize('form', _FORMS)
def test_values_without_packing(
    behavior, cluster, monkeypatch, form, program):
  del behavior
  args = (form, cluster, _PROGRAMS[program],
          packed_programs.OPTIMIZERS['adam'])
  few, values = packed_programs.trained_as(*args)
  monkeypatch.setattr(packing, 'MAX_BYTES', -1)
  many, expected = packed_programs.trained_as(*args)
  # Some recommenders have only one table on each server.
  assert sum(few.values()) <= sum(many.values()) - (
      program in packed_strangers.PROGRAMS) or form in packed_programs.BY_HAND
  assert values.keys() == expected.keys()
  for name, value in values.items():
    np.testing.assert_array_equal(value, expected[name], err_msg=name)


def test_a_fetch_of_a_part_computes_no_more(behavior, cluster):
  del behavior

  def model_fn(features, labels, mode):
    del features, labels
    small, other = (tf1.get_variable(name, [4, 4]) for name in ('v', 'w'))
    with tf.name_scope('cheap'):
      cheap = tf.reduce_sum(tf.square(small))
    with tf.name_scope('dear'):
      dear = tf.reduce_sum(tf.exp(other @ other))
    return tf.estimator.EstimatorSpec(
        mode, loss=cheap + dear, predictions=cheap,
        train_op=packed_programs.sgd().minimize(
            cheap + dear, tf1.train.get_global_step()))

  worker = strategy_worker.StrategyWorker(
      distribute.PackedParameterServerStrategy(
          tf.distribute.cluster_resolver.SimpleClusterResolver(
              cluster.cluster_spec, task_type='worker', task_id=0)),
      model_fn, cluster.target('worker', 0))
  metadata = tf1.RunMetadata()
  worker.session.run(
      worker.spec.predictions, run_metadata=metadata, options=tf1.RunOptions(
          output_partition_graphs=True))
  names = [node.name for graph in metadata.partition_graphs
           for node in graph.node]
  assert [name for name in names if name.startswith('cheap')]
  assert not [name for name in names
              if name.startswith(('dear', 'gradients', 'GradientDescent'))]
  worker.close()


@pytest.mark.parametrize('ours_first', [True, False])
def test_checkpoints_are_those_of_tensorflows_strategy(
    behavior, cluster, tmp_path, ours_first):
  del behavior
  order = [distribute.PackedParameterServerStrategy,
           packed_programs.tensorflows]
  paths = []
  for make_strategy in order if ours_first else reversed(order):
    worker = strategy_worker.StrategyWorker(
        make_strategy(tf.distribute.cluster_resolver.SimpleClusterResolver(
            cluster.cluster_spec, task_type='worker', task_id=0)),
        packed_strangers.tables(packed_programs.OPTIMIZERS['adam']),
        cluster.target('worker', 0), checkpoint_dir=str(tmp_path))
    worker.step(2)
    paths.append(worker.save(str(tmp_path / f'model.ckpt-{len(paths)}')))
    worker.close()
  first, second = (dict(tf.train.list_variables(path)) for path in paths)
  assert first == second
  assert tf.train.load_variable(paths[0], 'global_step') == 2
  assert tf.train.load_variable(paths[1], 'global_step') == 4
