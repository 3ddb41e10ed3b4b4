# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The settings of the site, without Sphinx; its copy button, in a browser."""
# BUILD data: //:sources

from __future__ import annotations

import html
import re
import subprocess

import pytest

from tests.docs import pages
from tfplugin.report import pictures

_CONF = (pages.DOCS / 'conf.py').read_text(encoding='utf-8')
_STATIC = pages.DOCS / '_static'
_PAGE = '''<!doctype html><title>waits</title>
<div class="highlight"><pre>{code}</pre></div>
<script>{script}</script>
<script>
document.execCommand = (command) => {{
  document.title = command + ': ' + JSON.stringify(
      document.querySelector('textarea').value);
}};
Object.defineProperty(navigator, 'clipboard', {{value: {{
  writeText: () => Promise.reject(new Error('no permission'))}}}});
addEventListener('load', () => document.querySelector('button').click());
</script>'''


def test_files_of_the_site_are_there_and_load_nothing():
  files = re.findall(r"html_(?:css|js)_files = \['(.*)'\]", _CONF)
  assert sorted(files) == sorted(path.name for path in _STATIC.iterdir())
  for file in files:
    text = (_STATIC / file).read_text(encoding='utf-8')
    assert not re.search(r'https?://|@import|url\(', text)


def test_signatures_have_types():
  assert "autodoc_typehints = 'signature'" in _CONF


def test_the_quick_site_runs_no_training():
  makefile = (pages.ROOT / 'Makefile').read_text(encoding='utf-8')
  quick, whole = (re.search(rf'^{target}: .*\n((?:\t.*\n)+)', makefile,
                            re.M)[1] for target in ('docs', 'docs-all'))
  assert 'nb_execution_mode=off' in quick and 'run_pictures' not in quick
  assert 'nb_execution_mode' not in whole and 'run_pictures' in whole


@pytest.mark.parametrize('code, copied', [
    ('pip install tfplugin', 'pip install tfplugin\\n'),
    ('$ make train\n$ make test', 'make train\\nmake test\\n'),
    ('>>> f(1)\n2\n>>> f(2,\n...   3)', 'f(1)\\nf(2,\\n  3)\\n'),
])
def test_the_button_copies_code_without_prompts(code, copied, tmp_path):
  try:
    browser = pictures.browser()
  except RuntimeError as error:
    pytest.skip(str(error))
  page = tmp_path / 'page.html'
  page.write_text(_PAGE.format(
      code=html.escape(code),
      script=(_STATIC / 'copy.js').read_text(encoding='utf-8')))
  shown = subprocess.run(
      [browser, '--headless', '--no-sandbox', '--disable-gpu',
       '--virtual-time-budget=1000', '--dump-dom', page.as_uri()],
      capture_output=True, text=True, timeout=100, check=True).stdout
  assert html.unescape(re.search('<title>(.*?)</title>', shown)[1]) == (
      f'copy: "{copied}"')
  assert '>Copied</button>' in shown or '>Copy</button>' in shown
