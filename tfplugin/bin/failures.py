# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Messages of a program that cannot begin, or go on."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import NoReturn

from absl import app

from tfplugin.events import last_words

# The extra `train`; imported by the modules that use them, when they do.
_PACKAGES = ('matplotlib', 'rich')
# The status that a shell reports for a program that Ctrl-C has ended.
_INTERRUPTED = 130
_WRONG_USAGE = 2


@contextlib.contextmanager
def shown() -> Iterator[None]:
  """Turns expected errors into their message and a non-zero exit status.

  A wrong argument, file or environment and a dead role are the user's to mend:
  the message helps there, not the lines of our code. Any other error is a
  defect and keeps its traceback.

  Yields:
    Nothing.

  Raises:
    SystemExit: with 130 after Ctrl-C; with 2 after a wrong command line; after
      another error with its `exit_status`, or with 1.
  """
  try:
    yield
  except app.UsageError as e:
    end_of_usage(str(e))
  except KeyboardInterrupt as e:
    text = str(e) or last_words.STOPPED
    print(f'{text[0].upper()}{text[1:]}.', file=sys.stderr)
    sys.exit(_INTERRUPTED)
  except (ValueError, RuntimeError, OSError) as e:
    print(f'Error: {e}', file=sys.stderr)
    sys.exit(getattr(e, 'exit_status', 1))


@contextlib.contextmanager
def of_usage() -> Iterator[None]:
  """Turns a ValueError into an error of the command line.

  Yields:
    Nothing.

  Raises:
    app.UsageError: a setting, which a flag gave, is wrong.
  """
  try:
    yield
  except ValueError as e:
    raise app.UsageError(str(e)) from e


def end_of_usage(message: str) -> NoReturn:
  """Says what is wrong with the command line, and ends the program."""
  print(f'Error: {message}\nSee {_name_of_program()} --help.', file=sys.stderr)
  sys.exit(_WRONG_USAGE)


def _name_of_program() -> str:
  """Returns how the user calls the program."""
  name = os.path.basename(sys.argv[0])
  return (f'python -m tfplugin.bin.{name[:-3]}' if name.endswith('.py')
          else name)


def check_installed() -> None:
  """Raises if a package is missing that a run would need only at its end.

  Raises:
    RuntimeError: a package is not installed; the message has the command that
      installs it.
  """
  missing = [p for p in _PACKAGES if importlib.util.find_spec(p) is None]
  if missing:
    raise RuntimeError(
        f'The programs of tfplugin need {" and ".join(missing)}. Install it '
        "with: python -m pip install 'tfplugin[train]'")
