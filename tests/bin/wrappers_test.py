# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what each wrapper adds to a model_fn."""

import pytest
import tensorflow as tf

from tfplugin.bin import models
from tfplugin.bin import options as options_lib
from tfplugin.bin import wrappers

tf1 = tf.compat.v1


def _build(wrapper, mode, **kwargs):
  """Returns the spec with the wrapper's figures and counts."""
  options = options_lib.TrainOptions(model_dir='unused', wrapper=wrapper,
                                     **kwargs)
  added = []

  def finish(spec, figures, counts):
    added.append((set(figures), set(counts)))
    return spec

  model_fn = wrappers.wrap(options, models.MODEL_FNS[options.model], finish)
  features, labels = tf.zeros([4, 64]), tf.zeros([4], tf.int32)
  if options.model == 'embedding':
    features = tf.zeros([4], tf.int32)
  spec = model_fn(features, labels, mode, {'num_classes': 10},
                  tf.estimator.RunConfig(model_dir='unused'))
  return spec, added


@pytest.mark.parametrize('wrapper, figures, counts', [
    ('none', set(), set()),
    ('elastic_average', {'elastic distance'}, set()),
    ('drop_stale', set(), {'dropped', 'applied'}),
    ('variable_clipping', {'fraction of rows clipped'}, set()),
    ('tower', set(), set()),
    ('cross_shard', set(), set()),
])
def test_each_wrapper_trains_and_says_what_it_does(wrapper, figures, counts):
  with tf.Graph().as_default():
    tf1.train.create_global_step()
    spec, added = _build(wrapper, tf.estimator.ModeKeys.TRAIN)
  assert spec.train_op is not None
  assert added == [(figures, counts)]


@pytest.mark.parametrize('wrapper', options_lib.WRAPPERS)
def test_evaluation_has_the_variables_of_the_plain_model(wrapper):
  names = []
  for name in (wrapper, 'none'):
    with tf.Graph().as_default():
      tf1.train.create_global_step()
      _, added = _build(name, tf.estimator.ModeKeys.EVAL)
      names.append(sorted(v.op.name for v in tf1.global_variables()))
    assert not added
  assert names[0] == names[1]


def test_what_is_clipped_are_rows_of_embeddings():
  with tf.Graph().as_default():
    tf1.train.create_global_step()
    spec, _ = _build('variable_clipping', tf.estimator.ModeKeys.TRAIN,
                     model='embedding', max_norm=0.25)
    table, context = tf1.trainable_variables()
    norms = [tf.norm(v, axis=1) for v in (table, context)]
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      for _ in range(3):
        session.run(spec.train_op)
      words, near = session.run(norms)
  # Word 0 alone is in the batch; the others have their initial value.
  assert words[0] <= 0.25 * (1 + 1e-6)
  assert near[0] <= 0.25 * (1 + 1e-6)
