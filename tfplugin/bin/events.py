# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads curves from the event files that TensorBoard shows."""

from __future__ import annotations

import os
import pathlib
from typing import NamedTuple
from typing import Union

import tensorflow as tf

tf1 = tf.compat.v1


class Curve(NamedTuple):
  """A scalar over the steps, in their order."""

  steps: list[int]
  values: list[float]


def read_curve(directory: Union[str, os.PathLike], tag: str) -> Curve:
  """Returns the scalar summary `tag` of the event files in `directory`.

  Several runs into one directory make one curve; where two wrote the same step,
  the later value counts. A file whose last record was cut off, because its
  writer was killed, counts as far as it goes.

  Args:
    directory: Where the event files are.
    tag: The summary's name.

  Returns:
    The curve; empty if there is none.
  """
  found = {}
  for path in sorted(pathlib.Path(directory).glob('events.out.tfevents.*')):
    try:
      for event in tf1.train.summary_iterator(str(path)):
        for value in event.summary.value:
          if value.tag == tag and value.HasField('simple_value'):
            found[event.step] = value.simple_value
    except tf.errors.DataLossError:
      continue
  steps = sorted(found)
  return Curve(steps, [found[step] for step in steps])
