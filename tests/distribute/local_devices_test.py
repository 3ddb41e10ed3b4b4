# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the devices of towers."""

import subprocess
import sys

import pytest
import tensorflow as tf

from tfplugin.distribute import local_devices


def test_default_is_the_logical_cpus_without_gpu():
  # conftest makes four.
  assert local_devices.check_devices(None) == [
      f'/device:CPU:{index}' for index in range(4)]


def test_default_is_the_gpus_where_there_are_some(monkeypatch):
  # Two GPUs, the second one divided in two.
  parts = {'A': None, 'B': [tf.config.LogicalDeviceConfiguration(10)] * 2,
           'cpu': None}
  monkeypatch.setattr(tf.config, 'get_visible_devices', {
      'GPU': ['A', 'B'], 'CPU': ['cpu']}.get)
  monkeypatch.setattr(
      tf.config, 'get_logical_device_configuration', parts.get)
  assert local_devices.check_devices(None) == [
      f'/device:GPU:{index}' for index in range(3)]


def test_default_does_not_initialise_the_runtime():
  # Setting logical devices raises once the runtime is initialised.
  program = (
      'import tensorflow as tf\n'
      'from tfplugin.distribute import local_devices\n'
      'assert local_devices.local_devices() == ["/device:CPU:0"]\n'
      'cpu, = tf.config.list_physical_devices("CPU")\n'
      'tf.config.set_logical_device_configuration(\n'
      '    cpu, [tf.config.LogicalDeviceConfiguration()] * 3)\n'
      'assert len(local_devices.local_devices()) == 3\n')
  subprocess.run([sys.executable, '-c', program], check=True, timeout=120)


@pytest.mark.parametrize('device, expected', (
    ('/gpu:1', '/device:GPU:1'), ('/CPU', '/device:CPU:0'),
    ('/job:worker/task:1/cpu:0', '/job:worker/task:1/device:CPU:0')))
def test_device_strings(device, expected):
  assert local_devices.check_devices([device]) == [expected]


def test_a_generator_of_devices_is_read_once():
  assert local_devices.check_devices(f'/cpu:{i}' for i in range(2)) == [
      '/device:CPU:0', '/device:CPU:1']
  with pytest.raises(ValueError, match='`devices` must name at least one'):
    local_devices.check_devices(iter(()))


@pytest.mark.parametrize('devices, error', (
    ([], ValueError), ('/cpu:0', TypeError), (['nonsense'], ValueError),
    (['/job:worker'], ValueError), ([0], TypeError), (3, TypeError)))
def test_bad_devices_are_refused(devices, error):
  with pytest.raises(error, match='`devices` must'):
    local_devices.check_devices(devices)


def test_devices_must_be_present():
  local_devices.check_present(['/device:CPU:0', '/device:CPU:3'])
  with pytest.raises(ValueError, match='CPU:4. There are: .*CPU:3'):
    local_devices.check_present(['/device:CPU:0', '/device:CPU:4'])


def test_copies_are_on_different_devices():
  assert local_devices.check_copies(['/cpu:0', '/cpu:1']) == [
      '/device:CPU:0', '/device:CPU:1']
  with pytest.raises(ValueError, match='each device once.*CPU:0, .*CPU:0'):
    local_devices.check_copies(['/cpu:0', '/cpu:0'])
  with pytest.raises(ValueError, match='must exist.*CPU:77'):
    local_devices.check_copies(['/cpu:77'])


@pytest.mark.parametrize('devices, missing', [
    (['/gpu:0', '/gpu:1', '/gpu:0'], '/device:GPU:0, /device:GPU:1'),
    (['/cpu:0', '/gpu:3'], '/device:GPU:3'), (['/cpu:0', '/cpu:0'], '')])
def test_a_gpu_that_is_not_there_is_warned_of(caplog, devices, missing):
  with caplog.at_level('WARNING'):
    local_devices.check_devices(devices)
  told = [r.getMessage() for r in caplog.records]
  assert [f'`devices` names {missing}, which this process does not have' in text
          for text in told] == ([True] if missing else [])
