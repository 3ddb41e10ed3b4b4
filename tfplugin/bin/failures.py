# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""How a program begins, and how it says that it cannot go on."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

from absl import app
from absl import flags

# The extra `train`; imported by the modules that use them, when they do.
_PACKAGES = ('matplotlib', 'rich')
# The status that a shell reports for a program that Ctrl-C has ended.
_INTERRUPTED = 130


def run_program(main: Callable[[list[str]], None],
                own_flags: Sequence[flags.FlagHolder]) -> None:
  """Runs a program alike as a module and as an installed script.

  absl shows, under `--help`, the docstring and the flags of the main module.
  That is the script where one calls us, which has neither.

  Args:
    main: The program; takes what is left of the command line. What it raises
      is `shown`.
    own_flags: Its flags.
  """
  sys.modules['__main__'].__doc__ = inspect.getmodule(main).__doc__
  for flag in own_flags:
    flags.FLAGS.register_key_flag_for_module(sys.argv[0],
                                             flags.FLAGS[flag.name])
  app.run(shown()(main))


@contextlib.contextmanager
def shown() -> Iterator[None]:
  """Turns expected errors into their message and a non-zero exit status.

  A wrong argument, file or environment and a dead role are the user's to mend:
  the message helps there, not the lines of our code. Any other error is a
  defect and keeps its traceback.

  Yields:
    Nothing.

  Raises:
    SystemExit: with 130 after Ctrl-C; after an error with its `exit_status`,
      or with 1.
  """
  try:
    yield
  except KeyboardInterrupt:
    print('Ended on request.', file=sys.stderr)
    sys.exit(_INTERRUPTED)
  except (ValueError, RuntimeError, OSError) as e:
    print(f'Error: {e}', file=sys.stderr)
    sys.exit(getattr(e, 'exit_status', 1))


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
