# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exemption of tf-keras from AutoGraph."""

from tensorflow.python.autograph.core import config


def exempt() -> None:
  """Lets AutoGraph skip tf-keras, as it skips Keras; may be repeated.

  TensorFlow 2.16 has this rule for the name `keras` only. A converted
  assignment reads a distributed variable in another context, and so another
  copy of it. `Model.evaluate` under ElasticAverageStrategy would then not
  evaluate the centre. A program may use tf-keras without Estimator.
  """
  rule = config.DoNotConvert('tf_keras')
  if str(rule) not in map(str, config.CONVERSION_RULES):
    config.CONVERSION_RULES += (rule,)
