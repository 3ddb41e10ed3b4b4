# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A picture of each panel, taken by a real browser where there is one."""

from __future__ import annotations

import shutil
import stat

import numpy as np
import pytest
from matplotlib import image

from tests.report import hand_written
from tfplugin.report import page
from tfplugin.report import pictures
from tfplugin.report import writing

_CHROMIUM = shutil.which('chromium') or shutil.which('chromium-browser')
_needs_chromium = pytest.mark.skipif(
    not _CHROMIUM, reason='needs chromium: apt-get install chromium')
# Of a dead task, and of one that trains.
_RED, _GREEN = (0xc0, 0x39, 0x2b), (0x54, 0xa2, 0x4b)


def _columns(picture, color):
  """Returns the columns that have a bar of that colour; the legend is lower."""
  is_color = (np.round(picture[..., :3] * 255) == color).all(-1)
  return np.flatnonzero(is_color.sum(0) >= 25)


@pytest.mark.parametrize('panel', page.PANELS)
@pytest.mark.sampled(8)
@_needs_chromium
@pytest.mark.timeout(280)
def test_a_picture_is_not_cut_off(tmp_path, panel):
  hand_written.write_run_of_all_panels(tmp_path)
  path = writing.write(tmp_path)['report.html']
  picture = image.imread(pictures.take(path, [panel])[f'{panel}.png'])
  assert picture.shape[1] == 1300
  # Something to the very end, and little is empty.
  is_empty = (picture[..., :3] == 1).all((1, 2))
  assert 2 <= np.argmin(is_empty[::-1]) < 180


@pytest.mark.sampled(3)
@_needs_chromium
@pytest.mark.timeout(280)
def test_each_panel_has_a_picture_and_faults_are_where_they_were(
    tmp_path, monkeypatch):
  hand_written.write_run_of_all_panels(tmp_path)
  # A browser is started for each.
  panels = {name: page.PANELS[name] for name in ('timeline', 'losses')}
  monkeypatch.setattr(page, 'PANELS', panels)
  files = writing.write(tmp_path, png=True)
  assert list(files) == ['report.json', 'trace.json', 'report.html', *(
      f'{name}.png' for name in panels)]
  timeline = image.imread(files['timeline.png'])
  # The chief trains from 5 s to 15 s and to 35 s; the worker is dead from 13 s
  # to 20 s.
  start, end = _columns(timeline, _GREEN)[[0, -1]]
  dead = _columns(timeline, _RED)
  dead = dead[(dead >= start) & (dead <= end)]
  second = (end - start) / 30
  assert (dead[0] - start) / second == pytest.approx(13 - 5, abs=1)
  assert (dead[-1] - start) / second == pytest.approx(20 - 5, abs=1)


@pytest.mark.sampled(3)
@_needs_chromium
@pytest.mark.timeout(280)
def test_one_panel_alone_has_a_picture(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  path = writing.write(tmp_path)['report.html']
  assert pictures.take(path, ['losses']) == {
      'losses.png': path.with_name('losses.png')}
  assert [p.name for p in path.parent.glob('*.png')] == ['losses.png']


@pytest.mark.sampled(3)
@_needs_chromium
@pytest.mark.timeout(280)
def test_a_picture_needs_no_frame(tmp_path):
  """On a busy machine the browser's clock is over before the next frame."""
  hand_written.write_chaos_run(tmp_path)
  path = writing.write(tmp_path)['report.html']
  expected = image.imread(pictures.take(path, ['losses'])['losses.png'])
  path.write_text(path.read_text().replace('<head>', """<head><script>
      window.requestAnimationFrame = function() { return 0; };
      window.IntersectionObserver = function() {
        this.observe = function() {};
      };</script>""", 1))
  found = image.imread(pictures.take(path, ['losses'])['losses.png'])
  assert np.array_equal(found, expected)
  assert (found[..., :3] != 1).any(-1).mean() > 0.01


def test_without_a_browser_the_remedy_is_named(tmp_path, monkeypatch):
  hand_written.write_chaos_run(tmp_path)
  monkeypatch.setenv('PATH', str(tmp_path / 'none'))
  with pytest.raises(RuntimeError, match='apt-get install chromium'):
    writing.write(tmp_path, png=True)
  # The rest is there.
  assert (tmp_path / 'report' / 'report.html').exists()


@pytest.mark.parametrize('program, message', [
    ('echo no display >&2; exit 3', 'ended with status 3: no display'),
    ('echo "<body>"', 'did not show the page')])
def test_a_browser_that_fails_is_an_error(
    tmp_path, monkeypatch, program, message):
  path = tmp_path / 'chromium'
  path.write_text(f'#!/bin/sh\n{program}\n')
  path.chmod(path.stat().st_mode | stat.S_IXUSR)
  monkeypatch.setenv('PATH', f'{tmp_path}:/usr/bin:/bin')
  (tmp_path / 'report.html').write_text('<head></head><body></body>')
  with pytest.raises(RuntimeError, match=message):
    pictures.take(tmp_path / 'report.html')
