# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hooks that write the numbers of a wrapper for TensorBoard."""

from __future__ import annotations

import abc
import numbers

import tensorflow as tf

from tfplugin import _tf_internals
from tfplugin.hooks import telemetry_hook
from tfplugin.hooks import tensorboard_files
from tfplugin.ops import staleness
from tfplugin.optimizers import drop_stale_gradient
from tfplugin.optimizers import variable_clipping

tf1 = tf.compat.v1


class SummaryWriterHook(tf1.train.SessionRunHook, abc.ABC):
  """Fetches scalars with the training step and writes them for TensorBoard.

  A subclass names the scalars, and the class of the optimizer that has them.
  The scalars of the last step are always written.
  """

  optimizer_class: type[tf1.train.Optimizer]

  def __init__(self, optimizer: tf1.train.Optimizer, output_dir: str,
               every_n_steps: int = 100):
    """Stores the optimizer to watch.

    Args:
      optimizer: It must apply gradients in this graph before the session
        starts.
      output_dir: The directory of the event files: of the chief the model_dir,
        of `worker:1` its subdirectory `worker-1`, where the report finds them.
      every_n_steps: Global steps between two points.

    Raises:
      TypeError: `optimizer` or `every_n_steps` is of another type.
      ValueError: `every_n_steps` is less than 1.
    """
    if not isinstance(optimizer, self.optimizer_class):
      raise TypeError(f'`optimizer` must be a `{self.optimizer_class.__name__}`'
                      f'. Received: {optimizer!r}')
    if isinstance(every_n_steps, bool) or not isinstance(
        every_n_steps, numbers.Integral):
      raise TypeError('`every_n_steps` must be an integer. '
                      f'Received: {every_n_steps!r}. Pass e.g. 100.')
    if every_n_steps < 1:
      raise ValueError('`every_n_steps` must be at least 1. '
                       f'Received: {every_n_steps!r}')
    self._optimizer = optimizer
    self._timer = tf1.train.SecondOrStepTimer(every_steps=every_n_steps)
    self._file = tensorboard_files.CurveFile(output_dir)
    self._fetches = {}
    self._unwritten = None

  @abc.abstractmethod
  def scalars(self) -> dict[str, tf.Tensor]:
    """Returns the tensors to fetch with each training step, by their tag."""

  def begin(self):
    """See base class."""
    step = telemetry_hook.global_step_for(self)
    scalars = self.scalars()
    for tag, tensor in scalars.items():
      if not _tf_internals.is_usable_here(tensor):
        raise RuntimeError(
            f'{type(self).__name__} cannot fetch `{tag}` from a branch, which '
            f'does not run in each step. Received: {tensor!r} of an optimizer '
            'in `tf.cond`, or inside another one, which may drop the update. '
            f'Put the {self.optimizer_class.__name__} outside, or leave this '
            'hook out. `TensorBoardHook` writes how many gradients were '
            'dropped.')
    self._fetches = {'step': step, 'scalars': scalars}

  def before_run(self, run_context):
    """See base class."""
    del run_context
    return tf1.train.SessionRunArgs(self._fetches)

  def after_run(self, run_context, run_values):
    """See base class."""
    del run_context
    step = int(run_values.results['step'])
    self._unwritten = (step, run_values.results['scalars'])
    if self._timer.should_trigger_for_step(step):
      self._timer.update_last_triggered_step(step)
      self._write()

  def end(self, session):
    """See base class."""
    del session
    self._write()
    self._file.flush()

  def _write(self) -> None:
    if self._unwritten is None:
      return
    step, scalars = self._unwritten
    self._file.write([tf1.Summary(value=[
        tf1.Summary.Value(tag=tag, simple_value=float(value))
        for tag, value in scalars.items()])], step)
    self._unwritten = None


class StalenessSummaryHook(SummaryWriterHook):
  """Writes how much a `DropStaleGradientOptimizer` drops on this worker.

  Scalars written, against global_step:
    staleness/staleness: the last step's, in global steps.
    staleness/dropped_fraction: of this worker's gradients so far, in [0, 1].
    staleness/num_dropped, staleness/num_applied: this worker's counters.
    staleness/stale_counter: the drops of all workers.

  Raises:
    RuntimeError: from `begin`, when the graph has no global step.

  Example:
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> from tfplugin import hooks
    >>> with tf.Graph().as_default():
    ...   step = tf.compat.v1.train.get_or_create_global_step()
    ...   weight = tf.compat.v1.get_variable('weight', initializer=3.0)
    ...   optimizer = tfplugin.DropStaleGradientOptimizer(
    ...       tf.compat.v1.train.AdamOptimizer(0.1), staleness=4)
    ...   train_op = optimizer.minimize(weight * weight, global_step=step)
    ...   hook = hooks.StalenessSummaryHook(optimizer, 'a_model_dir')
    >>> # tf.estimator.EstimatorSpec(..., training_hooks=[hook])
  """

  optimizer_class = drop_stale_gradient.DropStaleGradientOptimizer

  def scalars(self) -> dict[str, tf.Tensor]:
    """See base class."""
    num_dropped = self._optimizer.num_dropped
    num_applied = self._optimizer.num_applied
    return {
        'staleness/staleness': self._optimizer.staleness,
        'staleness/dropped_fraction': staleness.dropped_fraction(
            num_dropped, num_applied),
        'staleness/num_dropped': num_dropped,
        'staleness/num_applied': num_applied,
        'staleness/stale_counter': self._optimizer.stale_counter.read_value(),
    }


class ClippingSummaryHook(SummaryWriterHook):
  """Writes how much a `VariableClippingOptimizer` clips.

  The value belongs to an update. Every `session.run` of a session with this
  hook must therefore make a training step, as with Estimator.

  Scalars written, against global_step:
    clipping/fraction_clipped: of the slices that the last step checked.

  Raises:
    RuntimeError: from `begin`, when the graph has no global step, or no update
      of the optimizer that a session can fetch.

  Example:
    >>> import tensorflow as tf
    >>> import tfplugin
    >>> from tfplugin import hooks
    >>> with tf.Graph().as_default():
    ...   step = tf.compat.v1.train.get_or_create_global_step()
    ...   table = tf.compat.v1.get_variable('table', [5, 4])
    ...   optimizer = tfplugin.VariableClippingOptimizer(
    ...       tf.compat.v1.train.AdamOptimizer(0.1), {'table': 1}, max_norm=2.0)
    ...   train_op = optimizer.minimize(tf.reduce_sum(table), global_step=step)
    ...   hook = hooks.ClippingSummaryHook(optimizer, 'a_model_dir')
    >>> # tf.estimator.EstimatorSpec(..., training_hooks=[hook])
  """

  optimizer_class = variable_clipping.VariableClippingOptimizer

  def scalars(self) -> dict[str, tf.Tensor]:
    """See base class."""
    fraction = self._optimizer.fraction_clipped
    if fraction is None:
      raise RuntimeError(
          'ClippingSummaryHook found no update of its optimizer in this graph. '
          'Call `minimize()` first; under a strategy there is no fraction.')
    return {'clipping/fraction_clipped': fraction}
