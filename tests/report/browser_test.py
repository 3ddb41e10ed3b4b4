# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The page is opened in a headless Chromium, where there is one."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.report import hand_written
from tests.report import opening
from tfplugin.report import page
from tfplugin.report import writing

_CHROMIUM = shutil.which('chromium') or shutil.which('chromium-browser')
# What the page looks like to a script, when all is drawn.
_PROBE = """<script>
var errors = [];
window.onerror = function(message) { errors.push(String(message)); };
</script>"""
# Plots are drawn one by one: told when all are, however long that takes.
_ANSWER = """<script>
(function tell() {
  var plots = Array.from(document.querySelectorAll('.plot'));
  var drawn = plots.filter(function(plot) {
    return plot.matches('.js-plotly-plot') && plot.querySelector('.main-svg');
  });
  if (drawn.length < plots.length && !errors.length) {
    return setTimeout(tell, 50);
  }
  fetch('/told', {method: 'POST', body: JSON.stringify({
      errors: errors, drawn: drawn.length,
      buttons: Array.from(document.querySelectorAll('.modebar-btn')).map(
          function(b) { return b.getAttribute('data-title'); }),
      sections: Array.from(document.querySelectorAll('section')).map(
          function(s) { return s.id; })})});
})();
</script>"""


@pytest.mark.skipif(not _CHROMIUM, reason='needs chromium: apt-get install '
                    'chromium')
@pytest.mark.timeout(280)
def test_every_plot_is_drawn_without_an_error(tmp_path):
  hand_written.write_run_of_all_panels(tmp_path)
  path = writing.write(tmp_path)['report.html']
  text = path.read_text()
  text = text.replace('<script>', _PROBE + '<script>', 1)
  # A window so high that all plots come into view.
  answer = opening.told_by(text.replace('</body>', _ANSWER + '</body>'),
                           height=9000)
  assert answer, 'Not all plots were drawn in two minutes.'
  assert answer['errors'] == []
  assert answer['drawn'] >= 9
  # None sends what is shown to somebody.
  assert any('PNG' in button for button in answer['buttons'])
  assert not [button for button in answer['buttons']
              if re.search('cloud|upload|share|studio', button, re.I)]
  assert answer['sections'] == list(page.PANELS)
