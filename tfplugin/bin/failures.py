# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a program shows its user when it cannot go on."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

# What a shell reports for a program that Ctrl-C has ended.
_INTERRUPTED = 130


@contextlib.contextmanager
def shown() -> Iterator[None]:
  """Turns expected errors into their message and a non-zero exit status.

  A wrong argument, file or environment and a dead role are the user's to mend:
  the message is what helps, not the lines of our code. Anything else is a
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
