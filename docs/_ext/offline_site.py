# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pages that load nothing from a network, and a build that makes sure of it."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import shutil

from sphinx import errors

# Attributes and rules of styles by which a browser fetches something.
_LOADS = re.compile(
    r'<(?:script|img|iframe|source|embed)\b[^>]*?\bsrc="(?:https?:)?//[^"]*'
    r'|<link\b(?![^>]*rel="canonical")[^>]*?\bhref="(?:https?:)?//[^"]*'
    r'|(?:@import|url\()\s*["\']?(?:https?:)?//[^"\')]*')
_BUNDLE = 'tex-chtml.js'
_FONTS = 'output/chtml/fonts/woff-v2'


def _mathjax() -> pathlib.Path:
  """Returns the folder of MathJax that a package brings."""
  package = importlib.util.find_spec('sphinx-mathjax-offline')
  return pathlib.Path(
      package.submodule_search_locations[0]) / 'static/mathjax'


def _copy_mathjax(app, exception) -> None:
  """Copies the two parts that pages need, of 24 MB."""
  if exception is None and app.builder.format == 'html':
    target = pathlib.Path(app.outdir) / '_static/mathjax'
    (target / _FONTS).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(_mathjax() / _BUNDLE, target)
    shutil.copytree(_mathjax() / _FONTS, target / _FONTS, dirs_exist_ok=True)


def _refuse_loads(app, exception) -> None:
  """Ends the build with an error if a page would load from outside."""
  if exception is not None or app.builder.format != 'html':
    return
  found = [f'{path.relative_to(app.outdir)}: {load}'
           for pattern in ('*.html', '*.css')
           for path in sorted(pathlib.Path(app.outdir).rglob(pattern))
           for load in _LOADS.findall(path.read_text(encoding='utf-8'))]
  if found:
    raise errors.ExtensionError(
        'Pages must load nothing from a network. Received: '
        + '; '.join(found) + '. Put the file into docs/_static.')


def setup(app) -> dict:
  """Is called by Sphinx."""
  app.config.mathjax_path = f'mathjax/{_BUNDLE}'
  app.connect('build-finished', _copy_mathjax)
  app.connect('build-finished', _refuse_loads)
  return {'parallel_read_safe': True}
