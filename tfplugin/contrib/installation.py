# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Installation of `tfplugin.contrib` under the old name `tf.contrib`."""

from __future__ import annotations

import importlib

from tfplugin.compat import contrib_aliases
from tfplugin.compat import module_aliases


def install() -> None:
  """Makes `tf.contrib` and `import tensorflow.contrib` be `tfplugin.contrib`.

  A program of TensorFlow 1.15 then keeps its imports and uses of the modules
  that `tfplugin.contrib` has. It begins with

    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    import tfplugin; tfplugin.contrib.install()

  It may be called again; an existing `tf.contrib` stays.

  Example:
    >>> tfplugin.contrib.install()
    >>> tf.contrib.opt.ElasticAverageOptimizer.BETA
    0.9
  """
  if hasattr(importlib.import_module('tensorflow'), 'contrib'):
    return
  module_aliases.AliasFinder(contrib_aliases.ALIASES).install()
  for api in contrib_aliases.APIS:
    importlib.import_module(f'{api}.contrib')
