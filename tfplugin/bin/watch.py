# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""tfplugin-watch: shows the current state of each task of a run.

    tfplugin-watch RUN_DIR

RUN_DIR is the model_dir of the run; its processes may be on other machines that
share the directory. A terminal gets a bar and a table that change; a file or a
pipe gets lines every 10 s. It ends when every training task has done its work
or was stopped, or by Ctrl-C.
"""

from __future__ import annotations

import sys

from absl import app
from absl import flags

from tfplugin.bin.results import live_display
from tfplugin.bin.results import watching
from tfplugin.bin.usage import command_line

_COMMANDS = command_line.CommandLine((
    command_line.Group('How it is shown', (
        flags.DEFINE_bool('once', False, 'Shows the run once and ends.'),
        flags.DEFINE_bool('live', True, 'Whether a terminal gets a bar and a '
                          'table that change, which needs rich.'),
    ), is_common=True),
))


def main(argv: list[str]) -> None:
  """Watches the run that the argument names."""
  if len(argv) != 2:
    raise app.UsageError('Takes one path, RUN_DIR: the model_dir of a run. '
                         f'Received: {" ".join(argv[1:]) or "none"}')
  values = _COMMANDS.values()
  watch = watching.Watch(argv[1])
  terminal = live_display.find_terminal()
  if values['live'] and not values['once'] and terminal is not None:
    watching.follow_live(watch, terminal)
    return
  watching.follow(watch, lambda line: print(line, file=sys.stdout, flush=True),
                  values['once'])


def run() -> None:
  """Runs the console script."""
  _COMMANDS.run(main)


if __name__ == '__main__':
  run()
