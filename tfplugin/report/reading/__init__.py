# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the files of a run tell; no file here draws, or imports TensorFlow."""
