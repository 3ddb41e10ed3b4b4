# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounds of evaluators, and evaluations after saves."""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Iterator
from typing import Any
from typing import Callable
from typing import Optional

import tensorflow as tf

from tfplugin._tf_internals import replacing


@contextlib.contextmanager
def evaluator_asks(goes_on: Callable[[], bool],
                   evaluate: Callable[[tf.estimator.Estimator,
                                       Callable[[], Any]], Any],
                   wait: Callable[[float], None]) -> Iterator[None]:
  """Makes evaluators of `tf.estimator.train_and_evaluate` call functions.

  `goes_on` is called before each round; False ends the evaluator. `evaluate` is
  called for each round. Its arguments are the Estimator and a function that
  evaluates and exports the newest checkpoint; it returns that function's
  result. `wait` is called with a number of seconds before the first round and
  between rounds. Estimator uses a listener, an object and `time.sleep` for
  these, which are private and no arguments.
  """
  training = sys.modules[tf.estimator.TrainSpec.__module__]
  rounds = replacing.replaced(
      training._ContinuousEvalListener,
      before_eval=lambda before: lambda self: before(self) and goes_on())
  evaluations = replacing.replaced(
      training._TrainingExecutor._Evaluator,
      evaluate_and_export=lambda once: lambda self: evaluate(
          self._estimator, functools.partial(once, self)))
  waits = replacing.replaced(training, time=lambda clock: types.SimpleNamespace(
      time=clock.time, sleep=wait))
  with rounds, evaluations, waits:
    yield


def evaluation_of_saves(
    estimator: tf.estimator.Estimator, eval_spec: tf.estimator.EvalSpec,
    max_steps: Optional[int]) -> tf.compat.v1.train.CheckpointSaverListener:
  """Returns the listener that evaluates and exports checkpoints in a master.

  `tf.estimator.train_and_evaluate` makes it, for a `master` without a strategy
  only. Its class is private.
  """
  training = sys.modules[tf.estimator.TrainSpec.__module__]
  return training._NewCheckpointListenerForEvaluate(
      training._TrainingExecutor._Evaluator(estimator, eval_spec, max_steps),
      eval_spec.throttle_secs, training._ContinuousEvalListener())
