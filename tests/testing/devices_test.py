# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for tfplugin.testing.devices."""

import subprocess
import sys

import pytest
import tensorflow as tf

from tfplugin.testing import devices

tf1 = tf.compat.v1


def test_enough_devices_already_is_no_error():
  tf.constant(1.0)
  assert devices.make_logical_cpus(3) == [
      '/device:CPU:0', '/device:CPU:1', '/device:CPU:2']


def test_too_late_is_refused_with_the_reason():
  tf.constant(1.0)
  with pytest.raises(RuntimeError, match='too late.*4 logical.*before the'):
    devices.make_logical_cpus(5)


def test_less_than_one_is_refused():
  with pytest.raises(ValueError, match='at least 1. Received: 0'):
    devices.make_logical_cpus(0)


def test_session_sees_the_devices():
  with tf.Graph().as_default():
    with tf1.Session(config=devices.session_config(3)) as session:
      names = [d.name for d in session.list_devices()
               if d.device_type == 'CPU']
  assert len(names) == 3


def test_fresh_process_gets_the_devices():
  program = ('from tfplugin.testing import devices; import tensorflow as tf; '
             'devices.make_logical_cpus(3); '
             'assert len(tf.config.list_logical_devices("CPU")) == 3')
  subprocess.run([sys.executable, '-c', program], check=True, timeout=120)
