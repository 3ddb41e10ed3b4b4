# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Type aliases in the signatures of tfplugin."""

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

  Type checkers treat TensorFlow's classes as Any, and would accept a string.
  """

  def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns (gradient, variable) tuples."""

  def apply_gradients(self, grads_and_vars: Any, *args: Any,
                      **kwargs: Any) -> Any:
    """Returns the op that updates the variables."""


# Returns an EstimatorSpec. The type is Any because naming that class would
# make `import tfplugin` load tensorflow_estimator.
ModelFn = Callable[..., Any]
