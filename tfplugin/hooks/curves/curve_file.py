# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Event file for TensorBoard whose write errors do not stop the training."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from typing import Optional
from typing import Union

import tensorflow as tf

tf1 = tf.compat.v1

# TensorFlow's writer raises one of these for a full or read-only disk; the
# class depends on the kernel's error.
_NOT_WRITTEN = (OSError, RuntimeError, ValueError, IndexError,
                tf.errors.OpError)


class CurveFile:
  """The event file of one task.

  TensorFlow's writer raises in some later step after its thread has failed.
  From then on it drops its data without a message.

  Example:
    >>> import tempfile
    >>> file = CurveFile(tempfile.mkdtemp())
    >>> file.write([tf1.Summary(value=[
    ...     tf1.Summary.Value(tag='loss', simple_value=0.5)])], step=10)
    >>> file.flush()
  """

  def __init__(self, directory: str):
    """Stores the directory; the first write opens the file.

    Other writers of `tf.compat.v1.summary.FileWriterCache` in this process
    write to the same file.
    """
    self._directory = directory
    self._writer: Optional[tf1.summary.FileWriter] = None
    self._has_warned = False

  def write(self, summaries: Iterable[Union[bytes, tf1.Summary]],
            step: Optional[int] = None) -> None:
    """Adds Summary messages, encoded or not."""
    def add(writer):
      for summary in summaries:
        writer.add_summary(summary, step)

    self._try(add)

  def flush(self) -> None:
    """Makes the added summaries visible to readers."""
    self._try(lambda writer: writer.flush())

  def _try(self, action: Callable[[tf1.summary.FileWriter], None]) -> None:
    try:
      if self._writer is None:
        with tf.Graph().as_default():  # The writer cannot be made eagerly.
          self._writer = tf1.summary.FileWriterCache.get(self._directory)
      self._writer.reopen()  # Does nothing, unless the writer has failed.
      action(self._writer)
    except _NOT_WRITTEN as e:
      if not self._has_warned:
        tf1.logging.warning(
            'The curves of TensorBoard cannot be written to %s: %s. Training '
            'goes on without.', self._directory, e)
      self._has_warned = True
