# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A worker's copy of a variable, which the outside takes for its centre."""

from __future__ import annotations

import tensorflow as tf

from tfplugin import _tf_internals


class LocalCopy(_tf_internals.ResourceVariable):
  """A worker's copy of a centre variable, which it stands in for.

  Reading, differentiating and updating it touch the copy. Its name, what a
  `Saver` stores for it and what a warm start initialises are the centre's, so
  that a checkpoint never holds one worker's copy in silence. For the same
  reason a fetch of the variable itself, `session.run(v)`, gives the centre;
  fetch `v.value()` for the copy.
  """

  def __init__(self, center: tf.Variable, **kwargs):
    """Creates the copy, initialised from the centre.

    Args:
      center: The variable on the parameter server.
      **kwargs: As `tf.Variable` takes them, without a name or initial value.
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
    """The variable that this is the copy of."""
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
    """The centre's: it can be read before there is a centre.

    A moving average starts from it.
    """
    return self._center.initial_value

  def initialized_value(self):
    """The centre's value, or its initial one before it is initialised."""
    return self._center.initialized_value()

  @property
  def _initializer_op(self):
    return self._own_initializer

  @_initializer_op.setter
  def _initializer_op(self, op):
    # TensorFlow's warm start replaces the initialiser of a variable. The copy
    # is then to start from the centre as ever, and the centre from there.
    if self._center is None or op is None:
      self._own_initializer = op
    else:
      _tf_internals.initialize_like(self._center, self.handle, op)

  def _set_save_slice_info(self, save_slice_info):
    super()._set_save_slice_info(save_slice_info)
    _tf_internals.set_save_slice_info(self._center, save_slice_info)

  def _gather_saveables_for_checkpoint(self):
    # What checkpoints of objects store, such as those of Keras models.
    return _tf_internals.saveables_of_copies(
        (self._center,), self._center, self._center.op.name)

  def read_value_no_copy(self):
    """Raises: only a Saver calls it, which would store this very copy.

    Raises:
      RuntimeError: Always.
    """
    raise RuntimeError(
        'A Saver of a partitioned variable, or one with names of its own, must '
        f'be given centre variables. Received: the local copy {self.name!r}. '
        'Pass `tf.compat.v1.global_variables()` to the Saver instead of the '
        'trainable variables.')
