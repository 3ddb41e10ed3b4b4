# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Messages of a program that cannot start or go on."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import NoReturn

from absl import app

from tfplugin.events import last_words

# The extra `train`. Modules import these packages only when they use them.
_PACKAGES = ('matplotlib', 'rich')
# The status that a shell reports for a program that Ctrl-C has ended.
_INTERRUPTED = 130
_WRONG_USAGE = 2


@contextlib.contextmanager
def shown() -> Iterator[None]:
  """Turns expected errors into a message and a non-zero exit status.

  A wrong argument, file or environment and a failed role are for the user to
  correct: the message helps there, not the lines of our code. Any other error
  is a defect and keeps its traceback. The status is 130 after Ctrl-C and 2
  after a wrong command line. Else it is the `exit_status` of the error, or 1.
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
  """Turns the `ValueError` of a flag's setting into an `app.UsageError`."""
  try:
    yield
  except ValueError as e:
    raise app.UsageError(str(e)) from e


def end_of_usage(message: str) -> NoReturn:
  """Reports an error in the command line and ends the program."""
  print(f'Error: {message}\nSee {_name_of_program()} --help.', file=sys.stderr)
  sys.exit(_WRONG_USAGE)


def _name_of_program() -> str:
  """Returns the command with which the user calls the program."""
  name = os.path.basename(sys.argv[0])
  return (f'python -m tfplugin.bin.{name[:-3]}' if name.endswith('.py')
          else name)


def check_installed() -> None:
  """Raises `RuntimeError` if a package for the end of a run is missing.

  The message has the command that installs it.
  """
  missing = [p for p in _PACKAGES if importlib.util.find_spec(p) is None]
  if missing:
    raise RuntimeError(
        f'The programs of tfplugin need {" and ".join(missing)}. Install it '
        "with: python -m pip install 'tfplugin[train]'")
