# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/speed.md is that of benchmarks/results/rows.json."""
# BUILD data: //:docs
# BUILD data: //benchmarks:results

import re
import sys

import numpy as np
import pytest

from benchmarks import page_part
from benchmarks import rows
from benchmarks import run

_ABOUT = dict(machine='A machine', cores=2, kernel='6.0', load_before=0.0,
              python='3.11.0', tensorflow='2.15.1', commit='abc')


def _repeat(clipped, rate):
  return {'clipping/dense 0%/pass_ms': 4.0, 'clipping/dense 0%/plain_ms': 10.0,
          'clipping/dense 0%/clipped_ms': clipped, 'elastic/async/rate': 100.0,
          'elastic/optimizer 1/rate': rate}


_BY_HAND = {'about': _ABOUT, 'repeats': [
    _repeat(14.0, 80.0), _repeat(20.0, 90.0), _repeat(18.0, 95.0)]}


def _table(text):
  """The cells of each row, by its first one."""
  return dict(re.findall(r'^\| (.*?) \| (.*) \|$', text, re.M))


def test_figures_by_hand():
  """(14 - 10) / 4, 10 / 4 and 8 / 4 passes; .8, .9 and .95 of the rate."""
  text = rows.PART.section(_BY_HAND)
  found = _table(text)
  assert found['dense clip of [500000, 64], 0% of the rows beyond the bound: '
               'added time / one pass of numpy over the table'] == (
                   '2 (1 to 2.5) | <= 2 | yes')
  assert found['elastic optimizer, period 1: steps per second / asynchronous '
               'SGD'] == '0.9 (0.8 to 0.95) | >= 0.9 | yes'
  assert len(found) == 3  # With the heads.
  assert ('Not run: dense clip of [500000, 64], 0% of the rows beyond the '
          'bound, reference variables') in text
  assert 'median of 3 repeats' in text and 'commit abc' in text


def test_a_missed_aim_is_said():
  worse = [_repeat(18.1, 89.9)]
  found = _table(rows.PART.section({'about': _ABOUT, 'repeats': worse}))
  assert [cells.split(' | ')[1:] for cells in found.values()][1:] == [
      ['<= 2', 'no'], ['>= 0.9', 'no']]


def test_the_page_has_what_the_results_say():
  text = page_part.PAGE.read_text(encoding='utf-8')
  assert rows.PART.written(text, rows.PART.read()) == text
  assert rows.PART.written(text, _BY_HAND) != text


def test_figures_of_the_page_follow_from_the_results():
  """Some of each kind, anew from the numbers of the file."""
  results = rows.PART.read()
  if results is None:
    assert 'Not measured yet: `make bench`' in page_part.PAGE.read_text(
        encoding='utf-8')
    return
  found = _table(page_part.PAGE.read_text(encoding='utf-8'))

  def check(what, figure):
    every = [figure(repeat) for repeat in results['repeats']]
    shown = [float(n) for n in re.findall(
        r'[\d.e+]+', found[what].split(' | ')[0])]
    np.testing.assert_allclose(
        shown, [np.median(every), min(every), max(every)], rtol=1e-3)

  check('dense clip of [500000, 64], 100% of the rows beyond the bound: added '
        'time / one pass of numpy over the table', lambda of: (
            of['clipping/dense 100%/clipped_ms']
            - of['clipping/dense 100%/plain_ms'])
        / of['clipping/dense 100%/pass_ms'])
  check('sparse clip in 1,000,000 rows, all beyond the bound: added time / '
        'added time of contrib',
        lambda of: (of['clipping/sparse 1000000 all/clipped_ms']
                    - of['clipping/sparse 1000000 all/plain_ms'])
        / of['contrib/sparse/1000000/added_ms'])
  check('drop stale, Adam, 50 variables of [128, 128]: step time / bare '
        'optimizer',
        lambda of: of['drop_stale/50 of 128/wrapped_ms']
        / of['drop_stale/50 of 128/bare_ms'])
  check('towers, 2 devices, CNN: step time / CentralStorageStrategy',
        lambda of: of['towers/cnn/towers']
        / of['towers/cnn/CentralStorageStrategy'])
  check('cross shard, 2 processes, 220 variables: step time / Horovod',
        lambda of: of['cross_shard/2/220 variables/ours']
        / of['cross_shard/2/220 variables/Horovod'])
  check('elastic strategy, period 100: steps per second / asynchronous SGD',
        lambda of: of['elastic/strategy 100/rate'] / of['elastic/async/rate'])


def test_rows_are_told_apart():
  assert len({row.what for row in rows.ROWS}) == len(rows.ROWS) > 50


def test_what_is_run_with_which_python():
  """The originals need an older one; Horovod one that has it."""
  every = run.commands([*run.names(), 'contrib'], 'python3.7', 'with_horovod')
  assert every['contrib'][0] == 'python3.7'
  assert every['cross_shard'][0] == 'with_horovod'
  assert every['as contrib'][1:] == every['contrib'][1:]
  assert every['clipping v1'] == [*every['clipping'], 'v1']
  assert {every[name][0] for name in every} == {
      sys.executable, 'python3.7', 'with_horovod'}
  without = run.commands([*run.names(), 'contrib'])
  assert {command[0] for command in without.values()} == {sys.executable}
  assert set(every) - set(without) == {'contrib'}


def test_figures_are_flat(tmp_path):
  program = tmp_path / 'program.py'
  program.write_text('print("{")\nprint(\'"a": {"b": 1.5}, "c": "2.15"}\')')
  assert run.figures_of('x', [sys.executable, str(program)]) == {'x/a/b': 1.5}
  program.write_text('raise SystemExit(3)')
  with pytest.raises(run.FailedError, match='x ended with status 3'):
    run.figures_of('x', [sys.executable, str(program)])


def test_an_unknown_name_is_refused(capsys):
  assert run.main(['slow']) == 2
  assert 'No such benchmark: slow. There are: clipping, cross_shard' in (
      capsys.readouterr().err)


def test_a_benchmark_that_fails_writes_nothing(monkeypatch, capsys):
  def fail(prefix, command):
    del command
    raise run.FailedError(f'{prefix} ended.')

  monkeypatch.setattr(run, 'figures_of', fail)
  monkeypatch.setattr(rows.PART, 'write', pytest.fail)
  assert run.main([]) == 1
  assert 'Nothing is written.' in capsys.readouterr().err
