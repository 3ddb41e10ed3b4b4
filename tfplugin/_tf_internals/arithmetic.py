# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Terms of a loss that is a sum of others, found by the types of its ops.

TensorFlow publishes the type of an op, but not its meaning.
"""

from __future__ import annotations

from typing import Optional

import tensorflow as tf

from tfplugin._tf_internals import op_types

# Ops that return their first input, in another form.
_PASS = frozenset("""
    CheckNumerics Cast DeepCopy EnsureShape Enter Exit Identity NextIteration
    PreventGradient Print RefIdentity RefSwitch Reshape Snapshot Squeeze
    StopGradient Sum Switch""".split())
_SIGNS = {'Neg': [-1.0], 'Sub': [1.0, -1.0]}
_ADD = frozenset('Add AddV2 AddN Neg Pack Sub'.split())
# Choices, with the index of the first alternative.
CHOICES = {'Merge': 0, 'RefMerge': 0, 'Select': 1, 'SelectV2': 1}
_CALL = frozenset("""
    Case If PartitionedCall StatefulPartitionedCall StatelessCase StatelessIf
    """.split())


def addends(tensor: tf.Tensor) -> list[tuple[tf.Tensor, float]]:
  """Returns the terms of the sum `tensor` with their signs; [] if unknown."""
  op, inputs = tensor.op, list(tensor.op.inputs)
  if op.type in _PASS:
    return [(inputs[0], 1.0)]
  if op.type == 'IdentityN':
    return [(inputs[tensor.value_index], 1.0)]
  if op.type in _ADD:
    return list(zip(inputs, _SIGNS.get(op.type, [1.0] * len(inputs))))
  if op.type in ('Concat', 'ConcatV2'):
    inputs = inputs[1:] if op.type == 'Concat' else inputs[:-1]
    return [(part, 1.0) for part in inputs]
  return []


def factors(tensor: tf.Tensor) -> Optional[tuple[tf.Tensor, tf.Tensor, bool]]:
  """Returns the operands of a product or quotient, and True for a quotient.

  Returns None for other tensors.
  """
  divides = tensor.op.type in ('RealDiv', 'Div', 'DivNoNan')
  if not divides and tensor.op.type not in ('Mul', 'MulNoNan'):
    return None
  return (*tensor.op.inputs, divides)


def alternatives(tensor: tf.Tensor) -> list[tf.Tensor]:
  """Returns the tensors of which `tensor` is one, also in function bodies."""
  op = tensor.op
  if op.type in _CALL:
    return [graph.outputs[tensor.value_index]
            for graph in op_types.functions_of(op)]
  return list(op.inputs)[CHOICES[op.type]:] if op.type in CHOICES else []
