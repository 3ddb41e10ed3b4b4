# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rounds of an evaluator, which TensorFlow ends at the last step alone."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Callable

import tensorflow as tf


@contextlib.contextmanager
def evaluator_asks(goes_on: Callable[[], bool]) -> Iterator[None]:
  """Lets `tf.estimator.train_and_evaluate`, in an evaluator, ask for its end.

  It asks a listener before each round, which is private, and no argument.

  Args:
    goes_on: Called before each round; False ends the evaluator.

  Yields:
    Nothing.
  """
  training = sys.modules[tf.estimator.TrainSpec.__module__]
  listener = training._ContinuousEvalListener
  original = listener.before_eval
  listener.before_eval = lambda self: original(self) and goes_on()
  try:
    yield
  finally:
    listener.before_eval = original
