# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The type aliases that tfplugin's signatures are written in."""

from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional
from typing import Protocol
from typing import Union

import tensorflow as tf

Gradient = Optional[Union[tf.Tensor, tf.IndexedSlices]]
GradsAndVars = Sequence[tuple[Gradient, tf.Variable]]
LossLike = Union[tf.Tensor, Callable[[], tf.Tensor]]



class Optimizer(Protocol):
  """A `tf.compat.v1.train.Optimizer`, for type checkers.

  These know nothing of TensorFlow's classes, and would take a text for one.
  """

  def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns pairs of gradients and variables."""

  def apply_gradients(self, grads_and_vars: Any, *args: Any,
                      **kwargs: Any) -> Any:
    """Returns the op that updates the variables."""


# Returns an EstimatorSpec. Spelled with Any because naming the class here
# would make `import tfplugin` load tensorflow_estimator.
ModelFn = Callable[..., Any]
