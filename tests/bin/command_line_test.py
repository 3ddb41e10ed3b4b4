# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Command lines of every program: help, wrong flags, and their errors."""

import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest
from absl import flags

from tfplugin.bin import command_line

pytestmark = pytest.mark.usefixtures('forking')

_ROOT = pathlib.Path(__file__).absolute().parents[2]

# With a flag that has no effect alone, and what it misses.
_ALONE = {
    'train': [('--staleness=3',
               '--wrapper=drop_stale or --strategy=drop_stale'),
              ('--devices=4', '--wrapper=towers or --strategy=towers or '
               '--wrapper=cross_shard or --strategy=cross_shard'),
              ('--communication_period=5 --wrapper=none',
               '--wrapper=elastic_average or --strategy=elastic_average'),
              ('--noevaluator --wrapper=towers',
               'a cluster, e.g. --workers=1 --ps=1'),
              ('--noevaluator --wrapper=none --workers=0',
               'a cluster, e.g. --workers=1 --ps=1'),
              ('--max_restarts=2 --restart=never',
               '--restart=on_failure or always'),
              ('--spare --restart=never', '--restart=on_failure or always')],
    'train_tpu': [('--iterations_per_loop=10', '--use_tpu'),
                  ('--master=grpc://a:1', '--use_tpu')],
    'launch': [('--live', '--model_dir'),
               ('--stall_limit=5', '--model_dir'),
               ('--steps=5', '--model_dir'),
               ('--image=a', '--manifest=kubernetes'),
               ('--max_restarts=2 --restart=never',
                '--restart=on_failure or always'),
               ('--evaluator_limit_secs=2', '--evaluator'),
               ('--nokeep_going --workers=0', '--workers=1 or more'),
               ('--ps_limit_secs=2 --ps=0', '--ps=1 or more')],
    'report': [],
    'watch': [],
    'plan': [],
    'migrate_checkpoint': [('--wrapper=drop_stale', '--to=contrib'),
                           ('--to=contrib --trained=w',
                            '--wrapper=elastic_average')],
}


def _run(program, *arguments):
  return subprocess.run(
      [sys.executable, '-m', f'tfplugin.bin.{program}', *arguments],
      cwd=_ROOT, capture_output=True, text=True, timeout=120)


def _flags(text):
  return re.findall(r'^  --(?:\[no\])?(\w+)', text, re.M)


@pytest.mark.parametrize('program', _ALONE)
def test_help_is_no_error_and_short_help_comes_first(program):
  short, full = (_run(program, flag) for flag in ('--help', '--helpfull'))
  assert (short.returncode, full.returncode) == (0, 0)
  for shown in (short, full):
    assert shown.stdout.startswith(f'tfplugin-{program.replace("_", "-")}: ')
    assert not shown.stderr
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "'[]'" not in shown.stdout and "''" not in shown.stdout
    # absl's words after the help of a flag that may be repeated.
    assert 'repeat this option' not in ' '.join(shown.stdout.split())
  flags = _flags(full.stdout)
  assert flags and len(flags) == len(set(flags))
  assert set(_flags(short.stdout)) <= set(flags)
  assert ('More with --helpfull: ' in short.stdout) is (
      len(_flags(short.stdout)) < len(flags))


def test_help_fits_a_narrow_terminal(monkeypatch):
  monkeypatch.setenv('COLUMNS', '60')
  lines = _run('launch', '--help').stdout.splitlines()
  # Commands and the names of flags are not broken.
  assert max(len(line) for line in lines
             if not line.lstrip().startswith(('tfplugin', '--'))) <= 60
  assert len([line for line in lines if len(line) > 60]) < 5


@pytest.mark.parametrize('program', _ALONE)
def test_a_wrong_flag_is_said_in_a_line_with_status_2(program):
  ended = _run(program, '--no_such_flag')
  assert ended.returncode == 2
  assert ended.stderr.splitlines() == [
      'Error: --no_such_flag: no such flag.',
      f'See python -m tfplugin.bin.{program} --help.']
  assert not ended.stdout


@pytest.mark.parametrize('program, flag, rule', [
    ('launch', '--ps=x', 'be a whole number'),
    ('launch', '--workers=x', 'be a number, such as 2, or a range, such as 1'),
    ('plan', '--step_ms=x', 'be a number'),
    ('launch', '--evaluator=x', 'be true or false'),
    ('launch', '--model_dir=', 'have a value, or be left out'),
    ('launch', '--manifest=x', 'be one of kubernetes, tfjob, compose'),
    ('launch', '--show=x', 'name tasks or jobs of the run')])
def test_a_wrong_value_is_said_with_its_rule_and_status_2(program, flag, rule):
  ended = _run(program, flag, '--', sys.executable, 'setup.py')
  assert ended.returncode == 2
  line, help_line = ended.stderr.splitlines()
  assert line.startswith(f'Error: {flag.partition("=")[0]} must {rule}')
  assert 'Received: ' in line or 'left out' in line
  assert help_line.endswith('--help.')


def test_a_value_of_a_flag_that_takes_none_is_an_error_of_the_command_line():
  ended = _run('train', '--nosynchronous=3')
  assert (ended.returncode, ended.stderr.splitlines()[0]) == (
      2, 'Error: --nosynchronous=3 does not take an argument')


def test_the_version_is_told_with_those_of_what_it_runs_on():
  ended = _run('train', '--version')
  assert ended.returncode == 0
  names = [line.split()[0] for line in ended.stdout.splitlines()]
  assert names[:3] == ['tfplugin', 'python', 'tensorflow']


@pytest.mark.parametrize('program, arguments, remedy', [
    (program, arguments, remedy)
    for program, cases in _ALONE.items() for arguments, remedy in cases])
def test_a_flag_without_effect_is_refused_with_what_it_needs(
    program, arguments, remedy):
  ended = _run(program, *arguments.split(), *(
      ['old', 'new'] if program == 'migrate_checkpoint' else []))
  name = arguments.split()[-1 if '--trained' in arguments else 0]
  name = name.partition('=')[0].replace('--no', '--')
  assert (ended.returncode, ended.stderr) == (2, (
      f'Error: {name} has no effect without {remedy}. Add it, or leave {name} '
      f'out.\nSee python -m tfplugin.bin.{program} --help.\n'))


def test_a_value_out_of_range_is_an_error_of_the_command_line(tmp_path):
  ended = _run('train', f'--model_dir={tmp_path / "run"}', '--workers=-1')
  assert ended.returncode == 2
  assert '--workers must be an integer of at least 0' in ended.stderr
  assert not (tmp_path / 'run').exists()


@pytest.mark.parametrize('error, status, shown', [
    (ValueError('`no_flag` must be'), 1, 'Error: `no_flag` must be\n'),
    (FileNotFoundError('no data'), 1, 'Error: no data\n'),
    (TimeoutError('waited'), 1, 'Error: waited\n'),
    (PermissionError(13, 'Permission denied', 'run/events'), 1,
     'Error: run/events: Permission denied. Give another path.\n'),
    (KeyboardInterrupt(), 130, 'Stopped on request.\n'),
])
def test_the_message_and_the_status(capsys, error, status, shown):
  with pytest.raises(SystemExit) as ended, command_line.failures_shown():
    raise error
  assert ended.value.code == status
  assert capsys.readouterr().err == shown


def test_arguments_are_named_as_users_type_them(capsys):
  flags.DEFINE_integer('rows', 1, 'A flag.')
  with pytest.raises(SystemExit), command_line.failures_shown(), (
      command_line.errors_of_usage()):
    raise ValueError('`rows` must be more than `columns`.')
  with pytest.raises(SystemExit), command_line.failures_shown():
    raise RuntimeError('`rows` is in use.')
  first, _, second = capsys.readouterr().err.splitlines()
  assert first == 'Error: --rows must be more than `columns`.'
  assert second == 'Error: --rows is in use.'
  del flags.FLAGS.rows


@pytest.mark.parametrize('imports_first', [True, False])
def test_a_message_of_tensorflow_is_shown_once(tmp_path, imports_first):
  path = tmp_path / 'program.py'
  path.write_text(textwrap.dedent(f'''
      from tfplugin.bin import command_line
      def main(argv):
        import tensorflow as tf
        tf.compat.v1.logging.warning('once')
      if {imports_first}:
        import tensorflow as tf
        tf.get_logger()
      command_line.CommandLine(()).run(main)'''))
  ended = subprocess.run(
      [sys.executable, str(path)], cwd=_ROOT, capture_output=True, text=True,
      timeout=120, env={**os.environ, 'PYTHONPATH': str(_ROOT)})
  assert ended.returncode == 0
  assert ended.stderr.count('once') == 1


def test_a_defect_keeps_its_traceback():
  with pytest.raises(AttributeError), command_line.failures_shown():
    raise AttributeError('ours')


def test_every_line_can_be_printed(monkeypatch):
  """To a stream without an encoding for it, and to one that is closed."""
  written = io.BytesIO()
  monkeypatch.setattr(sys, 'stdout', io.TextIOWrapper(written, 'ascii'))
  monkeypatch.setattr(sys, 'stderr', None)
  command_line._open_streams()
  command_line.say('one \ufffd')
  sys.stderr.write('two')
  assert written.getvalue() == b'one \\ufffd\n'


@pytest.mark.parametrize('kind, raises', [
    (OSError, False), (BrokenPipeError, True)])
def test_a_line_is_lost_on_a_full_disk(monkeypatch, kind, raises):
  class Stream:
    def write(self, text):
      raise kind(text)

  monkeypatch.setattr(sys, 'stdout', Stream())
  with pytest.raises(kind) if raises else contextlib.nullcontext():
    command_line.say('one')
