# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Worker's copy of a variable, which presents itself as its centre."""

from __future__ import annotations

import tensorflow as tf

from tfplugin import _tf_internals


class LocalCopy(_tf_internals.ResourceVariable):
  """A worker's copy that presents itself as its centre.

  Reading, differentiating and updating it use the copy. A `Saver` and a warm
  start use the centre, and its name is the centre's. So a checkpoint never
  holds one worker's copy by mistake. For the same reason `session.run(v)`
  returns the centre; fetch `v.value()` for the copy.
  """

  def __init__(self, center: tf.Variable, **kwargs):
    """Makes the copy, initialised from the centre.

    `kwargs` are arguments of `tf.Variable`, without a name or an initial value.
    """
    self._center = None
    super().__init__(
        initial_value=center.read_value(),
        name=center.name.split(':')[0] + '/local_copy',
        **kwargs)
    self._center = center
    self._graph_element = _tf_internals.graph_element(center)

  @property
  def center(self) -> tf.Variable:
    """The variable of which this is a copy."""
    return self._center

  @property
  def name(self) -> str:
    """The centre's name."""
    return self._center.name if self._center is not None else super().name

  @property
  def op(self) -> tf.Operation:
    """The centre's op, after which optimizers name their slots."""
    return self._center.op

  @property
  def initial_value(self):
    """The centre's initial value, which is available before the centre is.

    A moving average starts from it.
    """
    return self._center.initial_value

  def initialized_value(self):
    """Returns the centre's value, or its initial one before initialisation."""
    return self._center.initialized_value()

  @property
  def _initializer_op(self):
    return self._own_initializer

  @_initializer_op.setter
  def _initializer_op(self, op):
    # TensorFlow's warm start replaces the initialiser of a variable. The copy
    # still starts from the centre, and the centre from the checkpoint.
    if self._center is None or op is None:
      self._own_initializer = op
    else:
      _tf_internals.initialize_like(self._center, self.handle, op)

  def _set_save_slice_info(self, save_slice_info):
    super()._set_save_slice_info(save_slice_info)
    _tf_internals.set_save_slice_info(self._center, save_slice_info)

  def _gather_saveables_for_checkpoint(self):
    # For object-based checkpoints, such as those of Keras models.
    return _tf_internals.saveables_of_copies(
        (self._center,), self._center, self._center.op.name)

  def read_value_no_copy(self):
    """Raises a RuntimeError: only a Saver calls it, and would save the copy."""
    raise RuntimeError(
        'A Saver of a partitioned variable, or one with names of its own, must '
        f'be given centre variables. Received: the local copy {self.name!r}. '
        'Pass `tf.compat.v1.global_variables()` to the Saver instead of the '
        'trainable variables.')
