# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The devices of this process, found without initialising them."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence

import tensorflow as tf


def local_devices() -> list[str]:
  """Returns this process's GPUs, or its logical CPUs where it has no GPU.

  Only physical devices and their configuration are queried. A list of *logical*
  devices would initialise the GPUs and claim their memory. In a cluster these
  are the devices of this task, named without job and task, e.g.
  `['/device:GPU:0', '/device:GPU:1']`.
  """
  return devices_of('GPU') or devices_of('CPU') or ['/device:CPU:0']


def devices_of(kind: str) -> list[str]:
  """Returns this process's logical devices, without initialising them."""
  count = 0
  for device in tf.config.get_visible_devices(kind):
    configurations = tf.config.get_logical_device_configuration(device)
    count += len(configurations or [None])
  return [f'/device:{kind}:{index}' for index in range(count)]


def check_devices(devices: Sequence[str] | None) -> list[str]:
  """Returns canonical device names; for None, the local devices.

  It warns of a GPU that this process does not have. Raises TypeError unless
  `devices` is a list of strings, and ValueError if it is empty or an entry is
  not a device string.
  """
  if devices is None:
    return local_devices()
  if isinstance(devices, Iterable) and not isinstance(devices, str):
    devices = list(devices)  # A generator yields them once.
  if not isinstance(devices, list) or not all(
      isinstance(d, str) for d in devices):
    raise TypeError('`devices` must be a list of device strings. '
                    f"Received: {devices!r}. Pass e.g. ['/gpu:0', '/gpu:1'].")
  if not devices:
    raise ValueError('`devices` must name at least one device. '
                     f'Received: {devices!r}. Leave it out to use the local '
                     'devices.')
  devices = [_canonical(device) for device in devices]
  _warn_of_gpus(devices)
  return devices


def _warn_of_gpus(devices: Sequence[str]) -> None:
  """Warns of missing GPUs: with soft placement the CPU trains instead."""
  missing = sorted({device for device in devices if ':GPU:' in device} -
                   set(devices_of('GPU')))
  if missing:
    tf.compat.v1.logging.warning(
        '`devices` names %s, which this process does not have: the CPU takes '
        'its place with allow_soft_placement, the default of Estimator. Name '
        'devices of `tf.config.list_logical_devices()`, or leave `devices` '
        'out.', ', '.join(missing))


def check_present(devices: Sequence[str]) -> None:
  """Raises ValueError unless this process has all canonical `devices`."""
  known = devices_of('GPU') + devices_of('CPU')
  unknown = [device for device in devices if device not in known]
  if unknown:
    raise ValueError(
        '`devices` must exist in this process. '
        f'Received: {", ".join(unknown)}. There are: {", ".join(known)}. '
        'Logical CPUs are made by '
        '`tf.config.set_logical_device_configuration`.')


def check_copies(devices: Sequence[str] | None) -> list[str]:
  """Returns canonical names of devices, each for one copy of the model."""
  devices = check_devices(devices)
  check_present(devices)
  if len(set(devices)) < len(devices):
    raise ValueError('`devices` must name each device once. Received: '
                     f'{", ".join(devices)}. Leave out the repeated ones.')
  return devices


def _canonical(device: str) -> str:
  try:
    spec = tf.DeviceSpec.from_string(device)
  except ValueError as error:
    raise ValueError(
        '`devices` must hold device strings. '
        f'Received: {device!r}. Pass e.g. `/gpu:0`.') from error
  if spec.device_type is None:
    raise ValueError('`devices` must name the type of each device. '
                     f'Received: {device!r}. Pass e.g. `/gpu:0`.')
  return spec.replace(device_index=spec.device_index or 0).to_string()
