# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The page is opened in a headless Chromium, where there is one."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest

from tests.report import hand_written
from tfplugin.report import page
from tfplugin.report import writing

_CHROMIUM = shutil.which('chromium') or shutil.which('chromium-browser')
# What the page looks like to a script, when all is drawn.
_PROBE = """<script>
var errors = [];
window.onerror = function(message) { errors.push(String(message)); };
</script>"""
_ANSWER = """<script>
setTimeout(function() {
  var drawn = document.querySelectorAll('.plot.js-plotly-plot .main-svg');
  var names = {};
  drawn.forEach(function(svg) { names[svg.closest('.plot').id] = 1; });
  document.body.setAttribute('data-answer', JSON.stringify({
      errors: errors, drawn: Object.keys(names).sort(),
      buttons: Array.from(document.querySelectorAll('.modebar-btn')).map(
          function(b) { return b.getAttribute('data-title'); }),
      empty: document.querySelectorAll('.plot').length}));
}, 1500);
</script>"""


@pytest.mark.skipif(not _CHROMIUM, reason='needs chromium: apt-get install '
                    'chromium')
@pytest.mark.timeout(280)
def test_every_plot_is_drawn_without_an_error(tmp_path):
  hand_written.write_chaos_run(tmp_path)
  path = writing.write(tmp_path)['report.html']
  text = path.read_text()
  text = text.replace('<script>', _PROBE + '<script>', 1)
  path.write_text(text.replace('</body>', _ANSWER + '</body>'))
  result = subprocess.run(
      [_CHROMIUM, '--headless', '--no-sandbox', '--disable-gpu',
       # So high that all plots come into view.
       '--window-size=1300,9000',
       f'--user-data-dir={tmp_path / "profile"}', '--dump-dom',
       '--virtual-time-budget=20000', path.as_uri()],
      capture_output=True, text=True, timeout=240, check=True)
  answer = json.loads(html.unescape(
      re.search(r'data-answer="([^"]*)"', result.stdout).group(1)))
  assert answer['errors'] == []
  assert len(answer['drawn']) == answer['empty'] >= 9
  # None sends what is shown to somebody.
  assert any('PNG' in button for button in answer['buttons'])
  assert not [button for button in answer['buttons']
              if re.search('cloud|upload|share|studio', button, re.I)]
  assert re.findall(r'<section id="(\w+)"', result.stdout) == list(page.PANELS)
