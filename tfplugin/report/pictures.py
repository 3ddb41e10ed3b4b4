# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pictures of the panels as PNGs, taken by a headless Chromium or Chrome.

A panel is more than its plots, and the page has its layout. The browser
therefore takes a picture of each panel. A plotting library would draw the plots
alone, and would need a browser as well.
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection

# Its names in Debian, in other distributions, and from Google.
_NAMES = ('chromium', 'chromium-browser', 'google-chrome',
          'google-chrome-stable', 'chrome')
_WIDTH = 1300
# Without an anchor all panels are shown; with an anchor only its panel.
_STYLE = """<style>
body:has(section:target)>:is(h1,.dir,nav){display:none}
section:target{margin-top:0;border:0}body{padding-bottom:12px}
#timeline .plot{min-height:0}
.modebar-container{display:none}
</style>"""
# Draws all plots at once, as for a printer. Otherwise they come one by one, in
# frames, for which the clock of a headless browser does not wait. All of them
# together show the heights of the panels.
_DRAWN = """<script>
document.querySelectorAll('section').forEach(function(section) {
  if (location.hash && location.hash != '#' + section.id) section.remove();
});
window.dispatchEvent(new Event('beforeprint'));
setTimeout(function() {
  var heights = {};
  document.querySelectorAll('section').forEach(function(section) {
    heights[section.id] = section.offsetHeight;
  });
  document.body.setAttribute('data-heights', JSON.stringify(heights));
}, 1000);
</script>"""
_MARGIN = 28
# The time for the plots to be drawn, on the virtual clock of the page.
_DRAWN_MSECS = 20000
_LIMIT_SECS = 120.0


def browser() -> str:
  """Returns the path of the browser; raises RuntimeError without one."""
  found = next(filter(None, map(shutil.which, _NAMES)), None)
  if found is None:
    raise RuntimeError(
        '`png` needs Chromium or Chrome. Received: none of '
        f'{", ".join(_NAMES)} in PATH. Install one, e.g. by '
        '`apt-get install chromium`, or save a plot with the camera above it.')
  return found


def take(page: pathlib.Path, panels: Collection[str] | None = None,
         ) -> dict[str, pathlib.Path]:
  """Writes a PNG of each panel beside the page; returns the files by name.

  `panels` None stands for all; a file is named like `timeline.png`. Raises
  RuntimeError if there is no browser, or if it takes no picture.
  """
  program = browser()
  text = page.read_text(encoding='utf-8')
  text = text.replace('</head>', _STYLE + '</head>', 1)
  before, end, after = text.rpartition('</body>')
  with contextlib.ExitStack() as stack:
    scratch = tempfile.mkdtemp()
    # A process of the browser may still write to its profile.
    stack.callback(shutil.rmtree, scratch, ignore_errors=True)
    alone = pathlib.Path(scratch, 'page.html')
    alone.write_text(before + _DRAWN + end + after, encoding='utf-8')
    files = {}
    heights = _heights(program, alone, scratch)
    for name in heights if panels is None else panels:
      target = page.with_name(f'{name}.png')
      target.unlink(missing_ok=True)
      _run(program, scratch, f'--screenshot={os.path.abspath(target)}',
           f'--window-size={_WIDTH},{heights[name] + _MARGIN}',
           f'{alone.as_uri()}#{name}')
      if not target.exists():
        raise RuntimeError(f'{program} has taken no picture {target}. Open '
                           f'{page} in it to see why.')
      files[target.name] = target
  return files


def _heights(program: str, page: pathlib.Path,
             scratch: str) -> dict[str, int]:
  """Returns the height of each panel by its name, in pixels."""
  shown = _run(program, scratch, '--dump-dom', f'--window-size={_WIDTH},2000',
               page.as_uri())
  heights = re.search(r'<body[^>]* data-heights="([^"]*)"', shown)
  if heights is None:
    raise RuntimeError(f'{program} did not show the page in '
                       f'{_DRAWN_MSECS / 1000:.0f} s of its clock. Received: '
                       f'{len(shown)} characters. Open it in the browser to '
                       'see why.')
  return json.loads(html.unescape(heights[1]))


def _run(program: str, scratch: str, *arguments: str) -> str:
  """Runs the browser once, and returns its output."""
  try:
    return subprocess.run(
        # Its sandbox needs rights that containers and root do not have; the
        # page is our own, and loads nothing.
        [program, '--headless', '--no-sandbox', '--disable-gpu',
         '--hide-scrollbars', '--force-device-scale-factor=1',
         f'--user-data-dir={scratch}/profile',
         f'--virtual-time-budget={_DRAWN_MSECS}', *arguments],
        capture_output=True, text=True, timeout=_LIMIT_SECS, check=True).stdout
  except subprocess.CalledProcessError as e:
    raise RuntimeError(f'{program} ended with status {e.returncode}: '
                       f'{e.stderr[-500:]}') from e
  except subprocess.TimeoutExpired as e:
    raise RuntimeError(f'{program} did not end in {_LIMIT_SECS:.0f} s. Open '
                       'the page in it to see why.') from e
