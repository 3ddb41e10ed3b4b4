# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the launcher's command line."""

# BUILD data: //:sources

import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures('forking')

_ROOT = pathlib.Path(__file__).absolute().parents[2]


def _run(*arguments):
  return subprocess.run(
      [sys.executable, '-m', 'tfplugin.bin.launch', *arguments], cwd=_ROOT,
      capture_output=True, text=True, timeout=120)


def test_without_a_program_it_says_how_to_call_it():
  ended = _run('--workers=2')
  assert ended.returncode == 2
  assert 'tfplugin-launch --workers=2 -- python program.py' in ended.stderr


@pytest.mark.parametrize('separator', [['--'], []])
def test_the_programs_own_flags_are_its_own(tmp_path, separator):
  ended = _run(
      '--workers=0', '--ps=0', f'--logs_dir={tmp_path}', *separator,
      sys.executable, '-c', 'import sys; print("got", sys.argv[1:])',
      '--workers=7')
  assert ended.returncode == 0
  assert "chief:0| got ['--workers=7']" in ended.stdout


def test_it_says_what_it_makes_of_tf_config(monkeypatch):
  monkeypatch.setenv('TF_CONFIG', (
      '{"cluster": {"worker": ["a:1", "b:1"], "ps": ["c:1"]}, '
      '"task": {"type": "worker", "index": "0"}}'))
  ended = _run('--explain')
  assert ended.returncode == 0
  assert ended.stdout == (
      'This is worker:0 of a cluster with 2 that train (worker:0, worker:1) '
      'and 1 parameter server. worker:0 is the chief: it initialises and '
      'saves.\n')


def test_the_page_has_the_flags_and_no_others():
  page, evidence = ((_ROOT / f'docs/{name}.md').read_text(encoding='utf-8')
                    for name in ('launcher', 'evidence_cluster'))
  rows = re.findall(r'^\| (`--.*?) \| (T?) ?\| .* \|$', page, re.M)
  # tests/conformance/testing_page_test.py looks whether the tests exist.
  proofs = dict(re.findall(r'^\| (`--.*?) \| (`.*) \|$', evidence, re.M))
  assert set(proofs) == {row for row, _ in rows}
  assert all(re.search(r'`test_\w+`', proof) for proof in proofs.values())
  told = {name: is_trains for row, is_trains in rows
          for name in re.findall(r'--(\w+)', row.replace('=worker', ''))}
  programs, shared = _ROOT / 'tfplugin/bin', 'command_line'
  flags = {program: {name for file in (program, shared) for name in re.findall(
      r"(?:(?:flags\.DEFINE_\w+|_int|_float|_bool)\(|Parser\(\),)\s*'(\w+)'",
      (programs / f'{file}.py').read_text(encoding='utf-8'))}
      for program in ('launch', 'train')}
  assert set(told) == flags['launch']
  assert {name for name in told if told[name]} == (
      flags['launch'] & flags['train'])


def test_a_task_that_is_killed_starts_again_by_default(tmp_path):
  ended = _run('--workers=0', '--ps=0', '--max_restarts=1',
               '--restart_delay_secs=0', f'--logs_dir={tmp_path}',
               sys.executable, '-c', 'import os; os.kill(os.getpid(), 9)')
  assert ended.returncode == 1
  assert 'it restarts in 0 s (1 of 1)' in ended.stdout


def test_a_failure_has_its_status_and_its_summary(tmp_path):
  ended = _run('--workers=0', '--ps=0', '--restart=always', '--max_restarts=1',
               '--restart_delay_secs=0', '--color=always',
               f'--logs_dir={tmp_path}', sys.executable, '-c',
               'print("tried"); raise SystemExit("no space left")')
  assert ended.returncode == 1
  assert ended.stdout.count('chief:0| \033[0mtried') == 2
  assert 'it restarts in 0 s (1 of 1)' in ended.stdout
  assert re.search(r'chief:0  failed  1  .*status 1 \(2 times\)', ended.stdout)
  assert re.search('(?m)^Error: chief:0 ended with status 1. The last',
                   ended.stderr)
  assert 'no space left' in ended.stderr
  assert '"status": "failed"' in (tmp_path / 'summary.json').read_text()
