# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Support of Estimator in a TensorFlow that no longer contains it.

TensorFlow 2.15 is the last version with `tf.estimator`, and
tensorflow-estimator 2.15.0 is the last release of that distribution. `import
tfplugin` calls `estimator_names.restore`, which does nothing on TensorFlow
2.15.
"""
