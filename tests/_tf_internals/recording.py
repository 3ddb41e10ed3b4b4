# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A strategy that notes what it is asked to run."""

from __future__ import annotations

import tensorflow as tf

from tfplugin import _tf_internals


class Recorder:
  """Goes in front of an extended class."""

  def _update(self, var, fn, args, kwargs, group):
    self.updates.append(fn)
    return super()._update(var, fn, args, kwargs, group)

  def _call_for_each_replica(self, fn, args, kwargs):
    self.calls.append(fn)
    return super()._call_for_each_replica(fn, args, kwargs)


class _Nothing:
  pass


def recording_strategy():
  """Returns a strategy over two devices, with `updates` and `calls`."""
  strategy = _tf_internals.strategy_with_mixins(
      tf.distribute.MirroredStrategy(
          ['/cpu:0', '/cpu:1'],
          cross_device_ops=tf.distribute.ReductionToOneDevice()),
      _Nothing, Recorder)
  strategy.extended.updates = []
  strategy.extended.calls = []
  return strategy
