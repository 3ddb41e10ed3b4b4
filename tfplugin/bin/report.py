# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""tfplugin-report: writes the report of a run, a page that opens anywhere.

    tfplugin-report RUN_DIR

RUN_DIR is the run's model_dir; the run may still be running. Writes
report.html, report.json with every number, and trace.json for ui.perfetto.dev
or chrome://tracing into RUN_DIR/report. With --png it also writes a picture of
each panel. The page explains how to read them.
"""

from __future__ import annotations

from absl import app
from absl import flags

from tfplugin.bin import command_line
from tfplugin.report import writing

_COMMANDS = command_line.CommandLine((
    command_line.Group('What is written', (
        flags.DEFINE_string('output_dir', None, 'The directory of the files. '
                            'Default: RUN_DIR/report.'),
        flags.DEFINE_bool('page', True, 'Whether report.html is written, which '
                          'needs plotly.'),
        flags.DEFINE_bool('png', False, 'Whether a PNG of each panel is '
                          'written, which needs Chromium or Chrome.'),
    ), is_common=True),
))


def main(argv: list[str]) -> None:
  """Writes the report of the run that the argument names."""
  if len(argv) != 2:
    raise app.UsageError('Takes one path, RUN_DIR: the model_dir of a run. '
                         f'Received: {" ".join(argv[1:]) or "none"}')
  values = _COMMANDS.values()
  if values['png'] and not values['page']:
    raise app.UsageError('--png needs the page, of which it takes pictures. '
                         'Received: --png --nopage. Leave one of them out.')
  if values['page']:
    files = writing.write(argv[1], values['output_dir'], values['png'])
  else:
    files = writing.write_numbers(argv[1], values['output_dir'])
  for path in files.values():
    print(path)


def run() -> None:
  """Runs the console script."""
  _COMMANDS.run(main)


if __name__ == '__main__':
  run()
