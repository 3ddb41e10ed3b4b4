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


def test_values_that_are_not_finite_are_told(tmp_path):
  hand_written.write_events(tmp_path,
                            hand_written.event(0, 'chief:0', 'ended'))
  hand_written.write_scalars(tmp_path, 'clipping/fraction_clipped',
                             (1, 1, 0.5), (2, 2, float('nan')))
  hand_written.write_samples(tmp_path, 'worker:0', (
      3, 1, 0, {'fraction of rows clipped': float('inf')}))
  section = clipping.measure(run_data.read(tmp_path))
  told = section['fractions'][clipping.CLIPPED]
  assert (told['chief:0']['mean'], told['chief:0']['largest']) == (0.5, 0.5)
  assert (told['worker:0']['mean'], told['worker:0']['largest']) == (None, None)
  panel = clipping.draw(section)
  assert panel.tables[0].rows == [
      (clipping.CLIPPED, 'chief:0', '50.00%', '50.00%'),
      (clipping.CLIPPED, 'worker:0', 'not finite', 'not finite')]
  assert 'chief:0: 1 of 2 values are not finite; the line has gaps there.' in (
      panel.missing)


def test_what_is_missing_is_said(tmp_path):
  hand_written.write_events(tmp_path,
                            hand_written.event(0, 'chief:0', 'ended'))
  section = clipping.measure(run_data.read(tmp_path))
  assert section['fractions'] == {}
  assert 'ClippingSummaryHook' in section['missing'][0]
