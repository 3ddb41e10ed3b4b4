# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of placement that no outer scope changes."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.distribute import placement

tf1 = tf.compat.v1


@pytest.mark.parametrize('device', ['/job:worker/task:1', '/device:CPU:0', ''])
def test_setter_does_not_reach_inside(behavior, device):
  del behavior
  setter = tf1.train.replica_device_setter(
      ps_tasks=2, worker_device='/job:worker/task:0')
  with tf.Graph().as_default(), tf1.device(setter):
    with placement.only_on(device):
      inside = tf1.get_variable('a', [])
    outside = [tf1.get_variable(name, []) for name in 'bc']
  assert inside.device == device
  # What is inside took no turn in the setter's round.
  assert [v.device for v in outside] == ['/job:ps/task:0', '/job:ps/task:1']


def test_a_colocation_is_left_for_the_devices_around_it():
  setter = tf1.train.replica_device_setter(ps_tasks=2)
  with tf.Graph().as_default() as graph, tf1.device(setter):
    around = _tf_internals.device_functions()
    with placement.only_on('/job:worker/task:1'):
      local = tf1.get_variable('a', [])
    with graph.colocate_with(local.op), placement.as_within(around):
      shared = tf1.get_variable('b', [])
    with placement.as_within(around), tf1.device('/device:CPU:1'):
      deeper = tf1.get_variable('c', [])
  assert [shared.device, deeper.device] == [
      '/job:ps/task:0', '/job:ps/task:1/device:CPU:1']


@pytest.mark.parametrize('message, is_explained', [
    ('Cannot colocate nodes {{a/else/_1/Read}} and {{b}}: Cannot merge devices '
     'with incompatible jobs: x and y', True),
    ('Cannot colocate nodes {{a}} and {{b}}: Cannot merge devices with '
     'incompatible jobs: x and y', False),
    ('Incompatible shapes', False)])
def test_only_conditions_are_explained(message, is_explained):
  error = tf.errors.InvalidArgumentError(None, None, message)
  with pytest.raises(RuntimeError if is_explained else type(error)) as raised:
    with placement.conditions_explained():
      raise error
  assert message in str(raised.value)
  assert ('`allow_soft_placement' in str(raised.value)) == is_explained
