# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes curves for TensorBoard, or warns that it cannot: training goes on."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from typing import Optional
from typing import Union

import tensorflow as tf

tf1 = tf.compat.v1

# What a writer of TensorFlow makes of a full disk, or one that is read-only,
# depends on the kernel's error: RuntimeError or, for most, another of these.
_NOT_WRITTEN = (OSError, RuntimeError, ValueError, IndexError,
                tf.errors.OpError)


class CurveFile:
  """The event file of one task.

  TensorFlow's writer raises in the step that happens to come next after its
  thread has failed, and from then on drops what it is given without a word.

  Example:
    >>> import tempfile
    >>> file = CurveFile(tempfile.mkdtemp())
    >>> file.write([tf1.Summary(value=[
    ...     tf1.Summary.Value(tag='loss', simple_value=0.5)])], step=10)
    >>> file.flush()
  """

  def __init__(self, directory: str):
    """Opens nothing yet.

    Args:
      directory: Where the file is made. Other writers of this process that
        are of `tf.compat.v1.summary.FileWriterCache` write to the same file.
    """
    self._directory = directory
    self._writer: Optional[tf1.summary.FileWriter] = None
    self._has_warned = False

  def write(self, summaries: Iterable[Union[bytes, tf1.Summary]],
            step: Optional[int] = None) -> None:
    """Adds summaries.

    Args:
      summaries: Messages of the type Summary, encoded or not.
      step: The global step.
    """
    def add(writer):
      for summary in summaries:
        writer.add_summary(summary, step)

    self._try(add)

  def flush(self) -> None:
    """Lets readers see what was added."""
    self._try(lambda writer: writer.flush())

  def _try(self, action: Callable[[tf1.summary.FileWriter], None]) -> None:
    try:
      if self._writer is None:
        with tf.Graph().as_default():  # It refuses to be made eagerly.
          self._writer = tf1.summary.FileWriterCache.get(self._directory)
      self._writer.reopen()  # Does nothing, unless it has failed.
      action(self._writer)
    except _NOT_WRITTEN as e:
      if not self._has_warned:
        tf1.logging.warning(
            'The curves of TensorBoard cannot be written to %s: %s. Training '
            'goes on without.', self._directory, e)
      self._has_warned = True
