# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Event file for TensorBoard, and the order of its page.

The layout of the charts and the settings of a run are summaries that the
package tensorboard makes. Newer TensorFlow does not require that package, so
the functions import it, and raise ImportError without it.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import Union

import tensorflow as tf

tf1 = tf.compat.v1

Setting = Union[bool, int, float, str]

STEPS_PER_SEC = 'speed/steps_per_sec'
DROPPED = 'staleness/num_dropped'
APPLIED = 'staleness/num_applied'
DROPPED_FRACTION = 'staleness/dropped_fraction'
EXCHANGES = 'elastic/num_exchanges'

# Tags by category and chart, as regular expressions: tags of our hooks, of
# tfplugin-train and of the wrappers' summaries. docs/report.md has the table.
LAYOUT = {
    'Speed': {
        'steps/s of each task': (STEPS_PER_SEC,),
        'global steps/s': ('global_step/sec',)},
    'Loss': {
        'loss of each task and of the saved model': ('loss',),
        'accuracy of the saved model': ('accuracy',)},
    'Staleness': {
        'staleness': ('staleness/staleness', r'staleness(_\d+)?'),
        'dropped fraction': (DROPPED_FRACTION,),
        'gradients dropped': (DROPPED,),
        'gradients applied': (APPLIED,)},
    'Elastic averaging': {
        'distance from the centre': (r'elastic_distance(_\d+)?',),
        'distance of groups of variables': ('elastic_distance/.+',),
        'exchanges': (EXCHANGES,)},
    'Clipping': {
        'fraction clipped': (
            'clipping/fraction_clipped',
            r'fraction_of_rows_(clipped|at_the_bound)(_\d+)?')},
}

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
    self._writer: tf1.summary.FileWriter | None = None
    self._has_warned = False

  def write(self, summaries: Iterable[bytes | tf1.Summary],
            step: int | None = None) -> None:
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
            'continues without them.', self._directory, e)
      self._has_warned = True


def layout() -> bytes:
  """Returns the summary that orders the tab Custom Scalars."""
  from tensorboard.plugins.custom_scalar import layout_pb2
  from tensorboard.plugins.custom_scalar import summary
  return summary.pb(layout_pb2.Layout(category=[
      layout_pb2.Category(title=title, chart=[
          layout_pb2.Chart(
              title=name,
              # TensorBoard matches only the beginning of a tag.
              multiline=layout_pb2.MultilineChartContent(
                  tag=[f'({tag})$' for tag in tags]))
          for name, tags in charts.items()])
      for title, charts in LAYOUT.items()])).SerializeToString()


def settings_begin(settings: Mapping[str, Setting]) -> bytes:
  """Returns the summary that shows `plain` settings in the tab HParams."""
  from tensorboard.plugins.hparams import summary_v2
  return summary_v2.hparams_pb(dict(settings)).SerializeToString()


def settings_end() -> bytes:
  """Returns the summary that marks the run as successfully ended."""
  from tensorboard.plugins.hparams import api_pb2
  from tensorboard.plugins.hparams import summary
  return summary.session_end_pb(api_pb2.STATUS_SUCCESS).SerializeToString()


def plain(settings: Mapping[str, Any]) -> dict[str, Setting]:
  """Returns the settings that TensorBoard can show.

  Lists are shown as text. None and objects are left out: an object's text would
  differ in each process.

  Example:
    >>> from tfplugin.hooks import tensorboard_files
    >>> tensorboard_files.plain({'a': 1, 'b': (2, 3), 'c': None, 'd': object()})
    {'a': 1, 'b': '2, 3'}
  """
  found = {}
  for name, value in settings.items():
    if isinstance(value, (list, tuple)):
      if all(isinstance(v, (str, numbers.Real)) for v in value):
        found[name] = ', '.join(map(str, value))
    elif isinstance(value, (bool, str)):
      found[name] = value
    elif isinstance(value, numbers.Integral):
      found[name] = int(value)
    elif isinstance(value, numbers.Real):
      found[name] = float(value)
  return found
