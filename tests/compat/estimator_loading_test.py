# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tables of TensorFlow that Estimator expects to be in."""

from __future__ import annotations

import types

from tfplugin.compat import estimator_loading


class _Row:

  def __init__(self, names, constants):
    self.row = names, constants


def test_a_table_without_estimator_gets_its_rows_once(monkeypatch):
  table = types.SimpleNamespace(
      TENSORFLOW_API_NAME='tensorflow', SUBPACKAGE_NAMESPACES=[],
      API_ATTRS={'tensorflow': _Row('a', 'b')},
      API_ATTRS_V1={'tensorflow': _Row('c', 'd')})
  monkeypatch.setattr(estimator_loading, 'tf_export', table)
  for _ in range(2):
    estimator_loading._add_api_name()
  assert table.SUBPACKAGE_NAMESPACES == ['estimator']
  assert table.API_ATTRS['estimator'].row == (
      '_estimator_api_names', '_estimator_api_constants')
  assert table.API_ATTRS_V1['estimator'].row == (
      '_estimator_api_names_v1', '_estimator_api_constants_v1')
