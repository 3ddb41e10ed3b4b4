# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The picture of a run, which `build_defs/run_pictures.py` has taken.

  :::{run-picture} elastic_average timeline
  What can be seen there.
  :::

The first word names the run, the second a panel of its report.
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

  required_arguments = 2
  has_content = True

  def run(self) -> list[nodes.Node]:
    name, panel = self.arguments
    caption = nodes.Element()
    self.state.nested_parse(self.content, self.content_offset, caption)
    file = f'{name}-{panel}.png'
    command = nodes.literal_block('', run_pictures.command(name))
    command['language'] = 'sh'
    if (run_pictures.DIRECTORY / file).exists():
      picture = nodes.image(uri=f'/pictures/runs/{file}',
                            alt=' '.join(caption.astext().split()))
    else:
      picture = nodes.paragraph(text=(
          'The picture is there where the site was built beside a Chromium.'))
    return [*caption.children, picture, command]


def setup(app) -> dict:
  """Is called by Sphinx."""
  app.add_directive('run-picture', _RunPicture)
  return {'parallel_read_safe': True}
