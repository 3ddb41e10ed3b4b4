# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gives Estimator back to a TensorFlow that has it no more.

TensorFlow 2.15 is the last that has `tf.estimator`, and tensorflow-estimator
2.15.0 the last of its distributions. `import tfplugin` calls
`estimator_names.restore`, which does nothing on TensorFlow 2.15.
"""
