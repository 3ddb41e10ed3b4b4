# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clipped fractions that are known."""

from tests.report import hand_written
from tfplugin.report import clipping
from tfplugin.report.reading import run_data


def test_fractions_of_tfplugin_train_and_of_the_hook(tmp_path):
  hand_written.write_events(tmp_path,
                            hand_written.event(0, 'chief:0', 'ended'))
  hand_written.write_options(tmp_path, wrapper='clip',
                             strategy='none', max_norm=2.0)
  hand_written.write_scalars(tmp_path, 'clipping/fraction_clipped',
                             (1, 1, 0.5), (2, 2, 1.0))
  hand_written.write_samples(
      tmp_path, 'worker:0', (3, 1, 0, {'fraction of rows clipped': 0.25}))
  section = clipping.measure(run_data.read(tmp_path))
  told = section['fractions'][clipping.CLIPPED]
  assert (told['chief:0']['mean'], told['chief:0']['largest']) == (0.75, 1.0)
  assert told['chief:0']['fraction']['x'] == [1, 2]
  assert told['worker:0']['fraction']['y'] == [0.25]
  assert section['max_norm'] == 2.0 and len(section['missing']) == 1


def test_what_is_missing_is_said(tmp_path):
  hand_written.write_events(tmp_path,
                            hand_written.event(0, 'chief:0', 'ended'))
  section = clipping.measure(run_data.read(tmp_path))
  assert section['fractions'] == {}
  assert 'ClippingSummaryHook' in section['missing'][0]
