# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""`params['context']` off TPU answers as TPUContext does."""

import pytest
import tensorflow as tf

from tfplugin.estimator import tpu_shards


def test_an_input_fn_learns_its_part():
  second = tpu_shards.ShardContext(4, invocation=1, num_invocations=4)
  assert second.current_input_fn_deployment() == ('/device:CPU:0', 1, 4, 1)
  whole = tpu_shards.ShardContext(4, invocation=0)
  assert whole.current_input_fn_deployment() == ('/device:CPU:0', 0, 1, 4)
  assert (whole.current_host, whole.num_hosts) == (0, 1)
  assert (whole.num_replicas, whole.num_of_replicas_per_host) == (4, 4)
  assert whole.device_for_replica(3) == ('/device:CPU:0', 3)
  assert whole.tpu_host_placement_function(0) == '/device:CPU:0'
  with pytest.raises(RuntimeError, match='device_assignment.*in the model_fn'):
    _ = whole.device_assignment


def test_a_model_fn_learns_the_number_of_shards():
  context = tpu_shards.ShardContext(4)
  assert (context.num_replicas, context.num_hosts) == (4, 1)
  assert context.device_assignment is None
  with pytest.raises(RuntimeError, match='current_host.*in the input_fn'):
    _ = context.current_host
  with pytest.raises(RuntimeError, match='deployment.*in the input_fn'):
    context.current_input_fn_deployment()


def test_has_every_public_member_of_a_tpu_context():
  tpu_estimator = tf.compat.v1.estimator.tpu.TPUEstimator
  module = __import__(tpu_estimator.__module__, fromlist=['tpu_context'])
  members = {name for name in vars(module.tpu_context.TPUContext)
             if not name.startswith('_')}
  assert members and members <= set(dir(tpu_shards.ShardContext(2)))
