# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names that a Saver gives to variables, and to the parts of one."""

from __future__ import annotations

from collections.abc import Iterable

import tensorflow as tf

from tfplugin import _tf_internals


def by_name(var_list: Iterable) -> dict:
  """Returns a dict from a Saver's names to variables, or to lists of parts.

  `var_list` has variables, whole or partitioned, and saveable objects. Raises
  TypeError for something else, and ValueError if two variables have the same
  name.
  """
  named = {}
  for item in _flat(var_list):
    info = (_tf_internals.save_slice_info_of(item)
            if isinstance(item, tf.Variable) else None)
    if info is not None:
      named.setdefault(info.full_name, []).append(item)
      continue
    name = item.op.name if isinstance(item, tf.Variable) else item.name
    if named.setdefault(name, item) is not item:
      raise ValueError('`var_list` must not hold two variables of one name. '
                       f'Received: {name} twice. Pass a dictionary from names '
                       'to variables.')
  return named


def _flat(var_list: Iterable) -> list:
  flat = []
  for item in var_list:
    if isinstance(item, tf.Variable) or hasattr(item, 'specs'):
      flat.append(item)  # A variable, or a SaveableObject.
    elif isinstance(item, Iterable) and not isinstance(item, str):
      flat.extend(item)
    else:
      raise TypeError('`var_list` must hold variables. '
                      f'Received: {item!r}')
  return flat
