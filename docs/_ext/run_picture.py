# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The picture of a run, which `build_defs/run_pictures.py` has taken.

  :::{run-picture} elastic_average
  What can be seen there.
  :::
"""

from __future__ import annotations

import pathlib
import sys

from docutils import nodes
from docutils.parsers.rst import Directive

sys.path.append(str(pathlib.Path(__file__).absolute().parents[2]))

from build_defs import run_pictures


class _RunPicture(Directive):
  """What can be seen, the picture, and the command that trained."""

  required_arguments = 1
  has_content = True

  def run(self) -> list[nodes.Node]:
    name, = self.arguments
    caption = nodes.Element()
    self.state.nested_parse(self.content, self.content_offset, caption)
    command = nodes.literal_block('', run_pictures.command(name))
    command['language'] = 'sh'
    file = run_pictures.picture(name)
    if file.exists():
      picture = nodes.image(uri=f'/pictures/runs/{file.name}',
                            alt=' '.join(caption.astext().split()))
    else:
      picture = nodes.paragraph(text=(
          'The picture is missing: make docs-all draws it, with a Chromium.'))
    return [*caption.children, picture, command]


def setup(app) -> dict:
  """Is called by Sphinx."""
  app.add_directive('run-picture', _RunPicture)
  return {'parallel_read_safe': True}
