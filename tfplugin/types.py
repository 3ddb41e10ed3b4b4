# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The type aliases that tfplugin's signatures are written in."""

from collections.abc import Sequence
from typing import Any
from typing import Callable
from typing import Optional
from typing import Union

import tensorflow as tf

Gradient = Optional[Union[tf.Tensor, tf.IndexedSlices]]
GradsAndVars = Sequence[tuple[Gradient, tf.Variable]]
LossLike = Union[tf.Tensor, Callable[[], tf.Tensor]]

# Returns an EstimatorSpec. Spelled with Any because naming the class here
# would make `import tfplugin` load tensorflow_estimator.
ModelFn = Callable[..., Any]
