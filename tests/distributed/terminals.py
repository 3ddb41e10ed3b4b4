# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Programs on a pseudo terminal, and what can be read on its screen."""

import codecs
import contextlib
import fcntl
import os
import pty
import re
import selectors
import signal
import struct
import subprocess
import sys
import termios
import time

_LIMIT_SECS = 120
_ROWS = 40
# The terminal becomes the one that Ctrl-C of the program comes from.
_BEGIN = '''
import fcntl, runpy, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)
'''
_SEQUENCE = re.compile(r'\033\[([?0-9;]*)([A-Za-z])')


class Screen:
  """As much of a terminal as the programs use; it never scrolls.

  Attributes:
    lines: What is there.
    erased: The lines that were there.
    is_cursor_shown: Whether the cursor is.
    sequences: The escape sequences that came.
  """

  def __init__(self, columns):
    self.lines = ['']
    self.erased = []
    self.is_cursor_shown = True
    self.sequences = []
    self._columns = columns
    self._row = self._column = 0
    self._rest = ''

  def write(self, text):
    text = self._rest + text
    position = 0
    while position < len(text):
      sequence = _SEQUENCE.match(text, position)
      if sequence:
        self._obey(*sequence.groups())
        position = sequence.end()
      elif text[position] == '\033':  # The rest of the sequence is to come.
        assert len(text) - position < 20, text[position:]
        break
      else:
        self._put(text[position])
        position += 1
    self._rest = text[position:]

  def _put(self, character):
    if character == '\r':
      self._column = 0
    elif character == '\n':
      self._row += 1
    else:
      if self._column == self._columns:
        self._row, self._column = self._row + 1, 0
      self._reach()
      line = self.lines[self._row].ljust(self._column)
      self.lines[self._row] = (line[:self._column] + character +
                               line[self._column + 1:])
      self._column += 1
    self._reach()

  def _reach(self):
    self.lines += [''] * (self._row + 1 - len(self.lines))

  def _obey(self, argument, letter):
    self.sequences.append(argument + letter)
    if letter == 'A':
      self._row -= int(argument)
      assert self._row >= 0
    elif argument + letter == '2K':
      self.erased.append(self.lines[self._row])
      self.lines[self._row] = ''
    elif argument == '?25':
      self.is_cursor_shown = letter == 'h'
    else:
      assert letter == 'm', argument + letter

  @property
  def text(self):
    """What is on the screen at the end, without what trails."""
    return '\n'.join(line.rstrip() for line in self.lines).rstrip()


class Program:
  """A program of this repository on a terminal; a context manager.

  Attributes:
    screen: What its terminal shows.
    process: The process.
  """

  def __init__(self, columns, module, *arguments, **variables):
    self.screen = Screen(columns)
    self._decoder = codecs.getincrementaldecoder('utf-8')()
    self._ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ,
                struct.pack('HHHH', _ROWS, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items()
                   if name not in ('NO_COLOR', 'COLUMNS', 'LINES', 'COLORTERM')}
    self.process = subprocess.Popen(
        [sys.executable, '-c', _BEGIN, module, *arguments],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**environment, 'TERM': 'xterm', **variables})
    os.close(theirs)

  def __enter__(self):
    return self

  def __exit__(self, *unused_error):
    self.process.kill()
    self.process.wait()
    os.close(self._ours)

  def press_ctrl_c(self):
    os.write(self._ours, b'\x03')

  def look_until(self, condition):
    """Reads until the condition holds for the screen."""
    deadline = time.monotonic() + _LIMIT_SECS
    while not condition(self.screen):
      assert time.monotonic() < deadline, self.screen.text
      assert self._read(), self.screen.text

  def finish(self):
    """Reads to the end; returns the status."""
    with contextlib.suppress(TimeoutError):
      while self._read():
        pass
    return self.process.wait(_LIMIT_SECS)

  def _read(self):
    with selectors.DefaultSelector() as selector:
      selector.register(self._ours, selectors.EVENT_READ)
      is_ready = selector.select(_LIMIT_SECS)
    if not is_ready:
      self.process.send_signal(signal.SIGTERM)
      raise TimeoutError(self.screen.text)
    try:
      got = os.read(self._ours, 1 << 16)
    except OSError:  # Nobody has the other end any more.
      return False
    self.screen.write(self._decoder.decode(got))
    return bool(got)
