# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exports of model_fns whose features are dictionaries of dense arrays."""

from __future__ import annotations

from typing import Callable

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

Arrays = dict[str, np.ndarray]


def receiver_of(features: Arrays) -> Callable:
  """Returns the function that receives such features, of any number of rows."""
  def receive():
    received = {key: tf1.placeholder(value.dtype, [None, *value.shape[1:]])
                for key, value in features.items()}
    return tf.estimator.export.ServingInputReceiver(received, received)
  return receive


def served(path: str, features: Arrays, config: tf1.ConfigProto) -> Arrays:
  """Returns the outputs of the export in `path` for features."""
  with tf.Graph().as_default(), tf1.Session(config=config) as session:
    signature = tf1.saved_model.load(
        session, [tf.saved_model.SERVING], path).signature_def[
            tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY]
    return session.run(
        {key: value.name for key, value in signature.outputs.items()},
        {signature.inputs[key].name: value
         for key, value in features.items()})
