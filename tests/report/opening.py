# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""How long a browser takes to open the page of a report.

    python -m tests.report.opening REPORT.html

starts a headless Chromium ten times, each with a new profile, and prints when
something was there to be read, when the plots in the window were, and when all
were, as a printer asks for: the least and the largest, in seconds since the
page was asked for. No test: what else the machine does is part of it.
"""

from __future__ import annotations

import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from tfplugin.report import pictures

# A plot counts when its frame is painted.
_PROBE = """<script>
(function() {
  var everything = location.hash === '#everything';
  function drawn() {
    return document.querySelectorAll('.plot > .plot-container').length;
  }
  function isDone(plot) {
    return plot.querySelector('.plot-container') || (
        !everything && plot.getBoundingClientRect().top >= innerHeight);
  }
  function tell() {
    var paint = performance.getEntriesByName('first-contentful-paint')[0];
    fetch('/told', {method: 'POST', body: JSON.stringify({
        read: paint ? paint.startTime : 0, drawn: drawn(),
        plots: performance.now()})});
  }
  function look() {
    if (Array.from(document.querySelectorAll('.plot')).every(isDone)) {
      // After the frame that shows them.
      requestAnimationFrame(function() { setTimeout(tell); });
    } else {
      setTimeout(look, 10);
    }
  }
  document.addEventListener('DOMContentLoaded', function() {
    if (everything) window.dispatchEvent(new Event('beforeprint'));
    look();
  });
})();
</script>"""
_LIMIT_SECS = 120.0


def measure(page: pathlib.Path, everything: bool) -> dict[str, Any]:
  """Returns what the page told: milliseconds, and how many plots are drawn.

  Args:
    page: The report.
    everything: Whether all plots are waited for; else those in the window.
  """
  text = page.read_text(encoding='utf-8').replace(
      '<head>', '<head>' + _PROBE, 1)
  return told_by(text, '#everything' if everything else '')


def told_by(text: str, anchor: str = '', height: int = 900) -> dict[str, Any]:
  """Opens a page; returns what it posts to `/told`; after two minutes nothing.

  The browser's clock is the machine's: what takes longer is waited for.

  Args:
    text: The page.
    anchor: What follows its address.
    height: Of the window, in pixels.
  """
  told: dict[str, Any] = {}

  class Handler(http.server.BaseHTTPRequestHandler):

    def do_GET(self):
      if self.path == '/':
        self._answer(text.encode())
      else:
        self.send_error(404)  # The picture of a tab.

    def do_POST(self):
      told.update(json.loads(
          self.rfile.read(int(self.headers['Content-Length']))))
      self._answer(b'')

    def log_message(self, *unused_args):
      pass

    def _answer(self, body):
      self.send_response(200)
      self.send_header('Content-Type', 'text/html; charset=utf-8')
      self.send_header('Content-Length', str(len(body)))
      self.end_headers()
      self.wfile.write(body)

  profile = tempfile.mkdtemp()
  with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler) as server:
    server.timeout = 1.0
    browser = subprocess.Popen(
        [pictures.browser(), '--headless', '--no-sandbox', '--disable-gpu',
         f'--window-size=1300,{height}', f'--user-data-dir={profile}',
         '--remote-debugging-port=0',
         f'http://127.0.0.1:{server.server_port}/{anchor}'],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True)
    try:
      deadline = time.monotonic() + _LIMIT_SECS
      while not told and time.monotonic() < deadline:
        server.handle_request()
    finally:
      # With the processes that it has started, which still write.
      os.killpg(browser.pid, signal.SIGKILL)
      browser.wait()
      shutil.rmtree(profile, ignore_errors=True)
  return told


if __name__ == '__main__':
  for everything in (False, True):
    runs = [measure(pathlib.Path(sys.argv[1]), everything) for _ in range(5)]
    shown = ('plots',) if everything else ('read', 'plots')
    print(runs[0]['drawn'], 'plots:', {  # noqa: T201
        key: f'{min(r[key] for r in runs) / 1000:.2f} to '
             f'{max(r[key] for r in runs) / 1000:.2f} s' for key in shown})
