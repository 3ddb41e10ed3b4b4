# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""tfplugin-migrate-checkpoint: renames the variables of tf.contrib's wrappers.

    tfplugin-migrate-checkpoint old_model_dir new_model_dir
    tfplugin-migrate-checkpoint old/model.ckpt-100 new/model.ckpt-100
    tfplugin-migrate-checkpoint --to=contrib --wrapper=drop_stale new old

The old checkpoint stays as it is, and nothing is overwritten. Optimizers'
slots, steps and the types of all values do not change.
"""

from __future__ import annotations

from absl import app
from absl import flags

from tfplugin.bin import command_line
from tfplugin.checkpoints import checkpoint_migration

_COMMANDS = command_line.CommandLine((
    command_line.Group('What is written', (
        flags.DEFINE_enum('to', 'tfplugin', checkpoint_migration.DESTINATIONS,
                          'Whose variable names the new checkpoint gets.'),
        command_line.define_wrapper(
            'wrapper', None, checkpoint_migration.WRAPPERS,
            'For --to=contrib: the wrapper that will restore it.'),
        flags.DEFINE_string('trained', None, 'For --to=contrib '
                            '--wrapper=elastic_average: a regular expression '
                            'for the names of the trained variables.'),
    ), is_common=True),
), [command_line.Need(('wrapper', 'trained'), '--to=contrib',
                      lambda values: values['to'] == 'contrib'),
    command_line.Need(('trained',), '--wrapper=elastic_average',
                      lambda values: values['wrapper'] == 'elastic_average')])


def main(argv: list[str]) -> None:
  """Migrates the checkpoint that the arguments name."""
  if len(argv) != 3:
    raise app.UsageError(
        'Takes two paths, OLD and NEW: checkpoints, or directories. Received: '
        f'{" ".join(argv[1:]) or "none"}')
  changes = checkpoint_migration.migrate(
      *argv[1:], **_COMMANDS.values())
  for change in changes:
    print(describe(change))


def describe(change: checkpoint_migration.Change) -> str:
  """Returns a line about the change of a variable."""
  if change.old == change.new:
    return f'kept      {change.old}'
  if change.new is None:
    return f'left out  {change.old}: {change.reason}'
  if change.old is None:
    return f'added     {change.new}: {change.reason}'
  return f'renamed   {change.old} to {change.new}: {change.reason}'


def run() -> None:
  """Runs the console script."""
  _COMMANDS.run(main)


if __name__ == '__main__':
  run()
