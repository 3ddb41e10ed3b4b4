# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `make mutants`, on a module of six lines and two test files."""
# BUILD data: //:sources

import json
import os
import pathlib
import subprocess
import sys

import pytest

from build_defs import equivalent_mutants
from build_defs import mutant_report
from build_defs import mutants as mutants_lib
from build_defs import mutation_testing
from build_defs import tests_of_files

_ROOT = pathlib.Path(__file__).absolute().parents[2]
_TOY = '''\
"""A toy; 1 + 1."""
def is_small(x: int, bound=3) -> bool:
  if x is None:
    raise ValueError(f'{1 + 1}')
  return x < bound
def shifted(x, by=0):
  while by > 9:
    by -= 1
  return x + by
def in_a_thread():
  return 1
'''
_TOY_TEST = '''\
import _thread, queue
import pytest
from tfplugin.ops import toy
def test_small():
  assert toy.is_small(2) and not toy.is_small(4)
def test_bad():
  with pytest.raises(ValueError):
    toy.is_small(None)
def test_shifted():
  assert toy.shifted(1, 0) == 1 and toy.shifted(1, 12) == 10
def test_thread_that_is_not_watched():
  found = queue.SimpleQueue()
  _thread.start_new_thread(lambda: found.put(toy.in_a_thread()), ())
  assert found.get(timeout=60) == 1
'''
# What is printed: the outcomes of two runs, of which the second has no time; in
# between, a test is added.
_PROGRAM = '''
import json, pathlib, sys
root, project = map(pathlib.Path, sys.argv[1:])
sys.path.insert(0, str(project))
from build_defs import mutant_runs
from build_defs import mutation_testing
mutant_runs.MORE_SECS = 10
population = mutation_testing.all_mutants(root, ['tfplugin'])
for chosen, minutes in ((population[1:], 9), (population, 0)):
  print(json.dumps([[m.after, outcome] for m, outcome in mutation_testing.run(
      root, chosen, minutes, preloaded=['pytest'])]))
  with (root / 'tests/ops/toy_test.py').open('a') as test:
    test.write('#')
'''


def _changes(source):
  return [mutant.after for mutant in mutants_lib.mutants('a.py', source)]


@pytest.fixture(name='toy')
def fixture_toy(tmp_path):
  files = {'pyproject.toml': '[tool.pytest.ini_options]\npythonpath = ["."]\n'
                             'addopts = "--import-mode=importlib"',
           'tfplugin/ops/toy.py': _TOY, 'tests/ops/toy_test.py': _TOY_TEST}
  for file, text in files.items():
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
  return tmp_path


def _run_twice(root):
  done = subprocess.run(
      [sys.executable, '-c', _PROGRAM, str(root), str(_ROOT)], cwd=root,
      env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)},
      capture_output=True, text=True, timeout=200, check=False)
  assert not done.returncode, done.stderr
  first, second = (json.loads(line) for line in done.stdout.splitlines()
                   if line.startswith('['))
  return dict(first), dict(second)


@pytest.mark.sampled(3)
def test_what_the_tests_ask_for_is_killed_and_the_rest_survives(toy):
  first, second = _run_twice(toy)
  survived = {line for line, outcome in first.items() if outcome == 'survived'}
  # Nothing asks for the bounds themselves, nor for what is not given.
  assert survived == {
      'return (x <= bound)', 'def shifted(x, by=1):'}
  # The loop that never ends is killed, too.
  assert first['by += 1'] == first['pass'] == first['if (x is not None):'] == (
      'killed')
  # So is what only a thread runs that nobody watches.
  assert first['return 2'] == 'killed'
  # What is killed stays so; for the others there are other tests, and no time.
  assert second == {
      'def is_small(x: int, bound=4) -> bool:': 'not run',
      **{line: 'killed' if outcome == 'killed' else 'not run'
         for line, outcome in first.items()}}
  # The repository is as it was.
  assert (toy / 'tfplugin/ops/toy.py').read_text() == _TOY


def test_tests_that_fail_without_a_change_are_an_error(toy):
  with (toy / 'tests/ops/toy_test.py').open('a') as test:
    test.write('def test_wrong():\n  assert toy.is_small(7)\n')
  with pytest.raises(AssertionError, match=(
      'must pass before a change is made.*(\n.*)*test_wrong')):
    _run_twice(toy)


def test_the_program_writes_the_page(tmp_path, monkeypatch):
  monkeypatch.setattr(mutation_testing, '_PAGE', tmp_path / 'page.md')
  monkeypatch.setattr(mutation_testing, 'run', lambda root, chosen, *_: [
      (mutant, 'survived') for mutant in chosen])
  mutation_testing.main(
      ['--paths', 'tfplugin/ops/elastic.py', '--seed=5', '--limit=3'])
  page = (tmp_path / 'page.md').read_text()
  assert '3 of ' in page and '| tfplugin/ops/elastic.py:' in page


def _sample(source, seed, limit):
  return [mutant.after for mutant in mutation_testing.sample(
      mutants_lib.mutants('a.py', source), seed, limit)]


def test_a_sample_goes_on_from_a_smaller_one():
  lines = [f'x = {number}' for number in range(50)]
  chosen = _sample('\n'.join(lines), 1, 20)
  assert chosen[:10] == _sample('\n'.join(lines), 1, 10)
  assert chosen != _sample('\n'.join(lines), 2, 20)
  # It stays when other lines come and go; equal lines are told apart.
  assert set(chosen) <= set(_sample('\n'.join(['y()', *lines]), 1, 21))
  assert sorted(_sample('y()\ny()', 1, 2)) == ['pass', 'pass']


def test_a_path_without_sources_is_refused(capsys):
  with pytest.raises(SystemExit):
    mutation_testing.main(['--paths', 'tfplugin/opps'])
  assert '`--paths` must name sources' in capsys.readouterr().err


@pytest.mark.parametrize('source, changes', [
    ('x = a and not b', ['x = (a or not b)', 'x = a and (b)']),
    ('x = a[-1]', ['x = a[(1)]', 'x = a[-2]']),
    ('x = 0.5 if f(y) else None', ['x = 1.5 if f(y) else None',
                                   'x = 0.5 if (not (f(y))) else None']),
    ('x = a < b <= c', ['x = (a <= b <= c)', 'x = (a < b < c)']),
    ('x = (a +\n     b)', ['x = ((a - b))']),
    ('check(x)', ['pass']),
    ("x = 'ä' if y == 1 else z", ["x = 'ä' if (y != 1) else z",
                                  "x = 'ä' if y == 2 else z"]),
    ('def f():\n  return x', ['return None']),
    ('class A:\n  b = True', ['b = False']),
    # For people, and for the interpreter.
    ("x = 'a%d' % b", []),
    ('@f(1)\ndef f(x: g[1]) -> g[2]:\n  """1"""', []),
    ("if __name__ == '__main__':\n  main()", []),
])
def test_changes_of(source, changes):
  assert _changes(source) == changes


def test_a_mutant_says_where_it_is():
  mutant, = mutants_lib.mutants('a.py', 'class A:\n  def f():\n    x = 1 \n')
  assert (mutant.line, mutant.function, mutant.lines) == (3, 'A.f', (3, 3))
  assert (mutant.before, mutant.after) == ('x = 1', 'x = 2')
  assert mutant.text == 'class A:\n  def f():\n    x = 2 \n'


@pytest.mark.parametrize('source, lines', [
    ('x = 1', None),
    ('class A:\n  x = 1', None),
    # A default shows wherever the function runs.
    ('def f(x=1):\n  y = x\n  return', (1, 3)),
    ('def f():\n  return x(\n      1)', (2, 3)),
    # The head of a statement that has others in it.
    ('def f():\n  with x(\n      1):\n    y = x\n', (2, 3)),
    ('def f():\n  if (y or\n      x): pass', (2, 2)),
])
def test_the_lines_that_a_test_must_run(source, lines):
  mutant, *_ = mutants_lib.mutants('a.py', source)
  assert mutant.lines == lines


@pytest.mark.parametrize('file, own, contract', [
    ('ops/elastic.py', 'ops/elastic_test.py', None),
    ('optimizers/tower.py', 'optimizers/tower_test.py', 'TowerOptimizer'),
    # The tests of clip_rules.py are not those of clip.py.
    ('distribute/clipping/clip.py', 'distribute/clipping/clip_test.py',
     'VariableClippingStrategy'),
    ('optimizers/elastic_updates.py',
     'distribute/updates/on_nonfinite_test.py', None),
])
def test_tests_of(file, own, contract):
  first, *others = tests_of_files.tests_of(_ROOT, f'tfplugin/{file}')
  assert first == (f'tests/{own}',)
  assert [arguments[1:] for arguments in others if len(arguments) > 1] == (
      [('-k', contract)] if contract else [])


def test_the_contract_has_the_tests_of_the_folder_and_of_no_file():
  _, *others, _ = tests_of_files.tests_of(
      _ROOT, 'tfplugin/distribute/towers/scratch_graph.py')
  stems = {pathlib.Path(file).stem for file, in others}
  assert stems >= {
      'tower_accumulation_test', 'tower_nesting_test', 'tower_strategy_test'}
  assert not {'split_graph_test', 'scratch_graph_test'} & stems


def test_tests_that_go_on_with_the_name_belong_to_the_file():
  own = tests_of_files.tests_of(_ROOT, 'tfplugin/estimator/replicate.py')
  assert ('tests/estimator/replicate_losses_test.py',) in own


def test_every_file_has_tests_and_every_contract_a_file():
  files = [f for path in mutation_testing.PATHS for f in (
      mutant.file for mutant in mutation_testing.all_mutants(_ROOT, [path]))]
  for file in set(files):
    for arguments in tests_of_files.tests_of(_ROOT, file):
      assert all((_ROOT / each).is_file()
                 for each in tests_of_files.files_of(arguments))
  for start, (test, word) in tests_of_files.CONTRACTS.items():
    assert any(file.startswith(start) for file in files)
    assert word in (_ROOT / test).read_text()


def test_equivalent_mutants_exist():
  known = {key for file in {file for file, *_ in equivalent_mutants.REASONS}
           for key in (mutant.key for mutant in mutants_lib.mutants(
               file, (_ROOT / file).read_text(encoding='utf-8')))}
  assert not set(equivalent_mutants.REASONS) - known


def test_the_page_counts_and_lists():
  one, two, three = mutants_lib.mutants('f/a.py', 'x = 1 | y\nz = 2')
  page = mutant_report.render(
      [(one, 'killed'), (two, 'survived'), (three, 'not run')], 9, 4, ['f'])
  assert "--seed=4 --limit=3 --paths f'" in page
  assert '3 of 9 mutants' in page and '50.0% were killed' in page
  assert '| `f` | 1 | 1 | 0 | 1 |' in page
  assert '| f/a.py:1, `module` | `x = 1 \\| y` | `x = 2 \\| y` |' in page
