# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether autograph converts the functions of tf-keras."""

from tensorflow.python.autograph.core import config


def exempt() -> None:
  """Lets autograph leave tf-keras alone, as it does Keras; may be repeated.

  TensorFlow 2.16 has the rule for the name `keras` only. A converted assignment
  reads a distributed variable in another context, and so another copy of it:
  `Model.evaluate` under ElasticAverageStrategy would not be of the centre. A
  program may use tf-keras without Estimator.
  """
  rule = config.DoNotConvert('tf_keras')
  if str(rule) not in map(str, config.CONVERSION_RULES):
    config.CONVERSION_RULES += (rule,)
