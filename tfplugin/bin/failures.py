# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""How a program says that it cannot go on, or begin."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator

# The extra `train`; imported by the modules that use them, when they do.
_PACKAGES = ('matplotlib', 'rich')
# The status that a shell reports for a program that Ctrl-C has ended.
_INTERRUPTED = 130


@contextlib.contextmanager
def shown() -> Iterator[None]:
  """Turns expected errors into their message and a non-zero exit status.

  A wrong argument, file or environment and a dead role are the user's to mend:
  the message helps there, not the lines of our code. Any other error is a
  defect and keeps its traceback.

  Yields:
    Nothing.

  Raises:
    SystemExit: with 1 after an error, with 130 after Ctrl-C.
  """
  try:
    yield
  except KeyboardInterrupt:
    print('Ended on request.', file=sys.stderr)
    sys.exit(_INTERRUPTED)
  except (ValueError, RuntimeError, OSError) as e:
    print(f'Error: {e}', file=sys.stderr)
    sys.exit(1)


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
