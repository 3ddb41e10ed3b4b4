# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command line of a program: its flags, their help, and its errors."""

from __future__ import annotations

import contextlib
import inspect
import logging
import math
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import NoReturn

from absl import app
from absl import flags

from tfplugin.events import process
from tfplugin.events import record
from tfplugin.events import wrapper_names

# The widest line of --help; a narrower terminal has narrower lines.
_WIDTH = 80
_LEAST_WIDTH = 40
_VALUES = {'int': 'N', 'range': 'N or MIN:MAX', 'float': 'X',
           'comma separated list of strings': 'A,B'}
# The status that a shell reports for a program that Ctrl-C has ended.
_INTERRUPTED = 130
_WRONG_USAGE = 2
# absl's messages about the value of a flag.
_WRONG_VALUE = re.compile(r'flag --(\w+)=(.*?): (.*)', re.S)
_RULES = {'invalid literal for int()': 'a whole number',
          'could not convert string to float': 'a number',
          "('Non-boolean argument": 'true or false'}
_CHOICES = re.compile(r'value should be one of <(.*)>')
# absl's message about a flag that is not defined, and its words after the help
# of a flag that may be repeated.
_UNKNOWN = re.compile(
    r"Unknown command line flag '(\w+)'(?:\. Did you mean: (.*) \?)?")
_REPEATED = re.compile(r';\s+repeat this option to specify a list of values$')


def say(line: str) -> None:
  """Prints a line at once; on a full disk the line is lost, and not the run."""
  try:
    print(line, flush=True)
  except BrokenPipeError:  # The reader has ended, and with it the program.
    raise
  except OSError:
    pass


class Group(NamedTuple):
  """Flags of one purpose; --help shows the common groups, --helpfull all."""

  title: str
  flags: Sequence[flags.FlagHolder]
  is_common: bool = False


class Need(NamedTuple):
  """A condition under which flags have an effect.

  `remedy` is the missing flag as users type it, e.g. '--to=contrib'; `holds`
  takes the values of all flags by name.
  """

  flags: Sequence[str]
  remedy: str
  holds: Callable[[Mapping[str, Any]], bool]


class _WrapperParser(flags.EnumParser):
  """Parser of a wrapper's name; it warns of a former spelling."""

  def parse(self, argument: str) -> str:
    name = wrapper_names.current(argument)
    if name != argument:
      print(f'Warning: the name {argument!r} of a wrapper is deprecated, and '
            f'tfplugin 2.0 removes it. Use {name!r}.', file=sys.stderr)
    return super().parse(name)


def define_wrapper(name: str, default: str | None, choices: Sequence[str],
                   text: str) -> flags.FlagHolder:
  """Defines a flag whose value is one of the wrappers in `choices`."""
  return flags.DEFINE(_WrapperParser(choices), name, default, text)


def define_failures(*others: flags.FlagHolder) -> Group:
  """Defines the flags about failures that all launchers have, before others."""
  return Group('Failures and time limits', (
      flags.DEFINE_string(
          'restart', 'on_failure', 'When an ended task is restarted: never, '
          'on_failure or always; or by job, e.g. '
          'worker=always,ps=on_failure.'),
      flags.DEFINE_integer('max_restarts', 3, 'How many times each task may '
                           'be restarted.'),
      flags.DEFINE_bool('spare', False, 'Keeps one more process, which has '
                        'imported TensorFlow, for the next task that '
                        'restarts.'),
      flags.DEFINE_float('stall_limit', 0.0, 'Seconds without a step of any '
                         'task after which the run counts as stalled; 0: '
                         'never.'),
      flags.DEFINE_float('grace_secs', 30.0, 'Seconds that tasks have for a '
                         'last checkpoint after Ctrl-C or SIGTERM.'),
      flags.DEFINE_string('inject', '', 'Faults to cause, e.g. "kill '
                          'worker:0 at step 120; nan chief:0 at step 9".'),
      *others))


class CommandLine:
  """The flags of a program."""

  def __init__(self, groups: Sequence[Group], needs: Sequence[Need] = ()):
    """Stores flags that are defined already; `--help` keeps their order."""
    self._groups = groups
    self._needs = needs

  def values(self) -> dict[str, Any]:
    """Returns each flag's value by its name; or raises `app.UsageError`."""
    values = {flag.name: flag.value
              for group in self._groups for flag in group.flags}
    for name, value in values.items():
      if value == '' and flags.FLAGS[name].default is None:
        raise app.UsageError(f'--{name} must have a value, or be left out.')
    for need in self._needs:
      given = [name for name in need.flags if flags.FLAGS[name].present]
      if given and not need.holds(values):
        name = given[0]
        raise app.UsageError(
            f'--{name} has no effect without {need.remedy}. Add it, or leave '
            f'--{name} out.')
    return values

  def run(self, main: Callable[[list[str]], None]) -> None:
    """Runs a program, alike as a module and as an installed script.

    `main` takes the arguments that are no flags; --help has its module's text.
    """
    text = inspect.getdoc(inspect.getmodule(main)) or ''
    app.define_help_flags()
    for name, short, show in (
        ('help', 'h', lambda: self.help_lines(text, is_full=False)),
        ('helpshort', None, lambda: self.help_lines(text, is_full=False)),
        ('helpfull', None, lambda: self.help_lines(text, is_full=True)),
        ('version', None, _version_lines)):
      flags.DEFINE_flag(_ShowFlag(name, short, show))
    # absl gives the root logger a handler. TensorFlow's logger may have its own
    # by now: then each of its lines would be shown twice.
    tensorflow = logging.getLogger('tensorflow')
    tensorflow.propagate = not tensorflow.handlers
    _open_streams()
    app.run(failures_shown()(main), flags_parser=_parse)

  def help_lines(self, text: str, is_full: bool) -> Iterator[str]:
    """Yields the lines of --help, or of --helpfull, which begin with `text`."""
    first, *others = text.split('\n\n')
    yield first
    for paragraph in others:
      # Indented lines are commands.
      yield '\n' + (paragraph if paragraph.startswith(' ') else _filled(
          ' '.join(paragraph.split())))
    for group in self._groups:
      if is_full or group.is_common:
        yield f'\n{group.title}:'
        for flag in group.flags:
          yield from _flag_lines(flags.FLAGS[flag.name])
    if not is_full and not all(group.is_common for group in self._groups):
      titles = '; '.join(g.title for g in self._groups if not g.is_common)
      yield '\n' + _filled(f'More with --helpfull: {titles}.')


def _open_streams() -> None:
  """Makes it possible to print any line, also if a stream is closed."""
  for name in ('stdout', 'stderr'):
    if getattr(sys, name) is None:
      setattr(sys, name, open(os.devnull, 'w'))
    # A task may write what the encoding of this stream lacks.
    with contextlib.suppress(OSError):  # Its file was replaced since.
      getattr(sys, name).reconfigure(errors='backslashreplace')


class _ShowFlag(flags.BooleanFlag):
  """A flag that prints lines and ends the program."""

  def __init__(self, name: str, short_name: str | None,
               lines: Callable[[], Iterator[str]]):
    super().__init__(name, False, f'Shows the {name}.', short_name=short_name,
                     allow_override=True)
    self._lines = lines

  def parse(self, argument):
    if self._parse(argument):
      for line in self._lines():
        print(line)
      sys.exit(0)


def _parse(argv: Sequence[str]) -> list[str]:
  """Parses the command line; ends the program with a line about an error."""
  try:
    return flags.FLAGS(argv)
  except (flags.Error, ValueError) as e:  # E.g. of --noname=value.
    _end_of_usage(_in_plain_words(str(e)))


def _in_plain_words(message: str) -> str:
  """Returns absl's message about a flag in the form of our own messages.

  Example:
    >>> _in_plain_words('flag --color=red: value should be one of <auto|never>')
    '--color must be one of auto, never. Received: red'
  """
  unknown = _UNKNOWN.fullmatch(message)
  if unknown:
    name, similar = unknown.groups()
    return (f'--{name}: no such flag.' + (
        f' Did you mean --{similar.replace(", ", " or --")}?'
        if similar else ''))
  found = _WRONG_VALUE.fullmatch(message)
  if not found:
    return message
  name, value, why = found.groups()
  for start, rule in _RULES.items():
    if why.startswith(start):
      return f'--{name} must be {rule}. Received: {value}'
  choices = _CHOICES.fullmatch(why)
  if choices:
    shown = ', '.join(filter(None, choices[1].split('|')))
    return f'--{name} must be one of {shown}. Received: {value}'
  return f'--{name} {why}. Received: {value}'


def _flag_lines(flag: flags.Flag) -> Iterator[str]:
  """Yields the name of a flag and its help."""
  yield f'  {_synopsis(flag)}'
  # absl puts the choices before the help; the line above has them already.
  text = _REPEATED.sub('', flag.help.rpartition('>: ')[2])
  if flag.default not in (None, '', []) and flag.default is not False:
    text += f' Default: {_shown(flag.default)}.'
  yield _filled(text, ' ' * 6)


def _filled(text: str, indent: str = '') -> str:
  """Returns a text in lines that fit the terminal."""
  columns = shutil.get_terminal_size((_WIDTH, 24)).columns
  return textwrap.fill(
      text, max(_LEAST_WIDTH, min(_WIDTH, columns)), initial_indent=indent,
      subsequent_indent=indent, break_on_hyphens=False)


def _synopsis(flag: flags.Flag) -> str:
  if flag.boolean:
    return f'--[no]{flag.name}'
  values = getattr(flag.parser, 'enum_values', None)
  if values:
    return f'--{flag.name}={"|".join(filter(None, values))}'
  return f'--{flag.name}={_VALUES.get(flag.flag_type(), "TEXT")}'


def _shown(default: Any) -> str:
  if default is True:
    return 'yes'
  if isinstance(default, list):
    return ','.join(default)
  return f'{default:g}' if isinstance(default, float) else str(default)


def _version_lines() -> Iterator[str]:
  for name, version in process.describe()['versions'].items():
    yield f'{name} {version}'


@contextlib.contextmanager
def failures_shown() -> Iterator[None]:
  """Turns expected errors into a message and a non-zero exit status.

  Other errors are defects and keep their traceback. The status is 130 after
  Ctrl-C and 2 after a wrong command line; else the error's, or 1.
  """
  try:
    yield
  except app.UsageError as e:
    _end_of_usage(str(e))
  except KeyboardInterrupt as e:
    text = str(e) or record.STOPPED
    print(f'{text[0].upper()}{text[1:]}.', file=sys.stderr)
    sys.exit(_INTERRUPTED)
  except (ValueError, RuntimeError, OSError) as e:
    message = f'{e.filename}: {e.strerror}. Give another path.' if (
        getattr(e, 'filename', None)) else _as_typed(str(e))
    print(f'Error: {message}', file=sys.stderr)
    sys.exit(getattr(e, 'exit_status', 1))


@contextlib.contextmanager
def errors_of_usage() -> Iterator[None]:
  """Turns the `ValueError` of a flag's setting into an `app.UsageError`."""
  try:
    yield
  except ValueError as e:
    raise app.UsageError(str(e)) from e


def check_integer(name: str, value: object, least: int) -> None:
  """Raises `ValueError` unless a setting is an integer of at least `least`."""
  if isinstance(value, bool) or not isinstance(value, int) or value < least:
    raise ValueError(f'`{name}` must be an integer of at least {least}. '
                     f'Received: {value!r}')


def check_finite(name: str, value: float, is_positive: bool = False) -> None:
  """Raises `ValueError` unless a setting is finite and at least 0."""
  if not 0 <= value < math.inf or is_positive and not value:
    least = 'positive' if is_positive else 'at least 0'
    raise ValueError(
        f'`{name}` must be {least} and finite. Received: {value!r}')


def _end_of_usage(message: str) -> NoReturn:
  """Reports an error in the command line and ends the program."""
  print(f'Error: {_as_typed(message)}\nSee {_name_of_program()} --help.',
        file=sys.stderr)
  sys.exit(_WRONG_USAGE)


def _as_typed(message: str) -> str:
  """Returns a message with arguments as users type them: `steps`: --steps."""
  return re.sub(r'`(\w+)`',
                lambda m: f'--{m[1]}' if m[1] in flags.FLAGS else m[0], message)


def _name_of_program() -> str:
  """Returns the command with which the user calls the program."""
  name = os.path.basename(sys.argv[0])
  return (f'python -m tfplugin.bin.{name[:-3]}' if name.endswith('.py')
          else name)
