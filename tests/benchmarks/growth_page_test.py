# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figures of docs/speed.md are those of benchmarks/results/growth.json."""
# BUILD data: //:docs
# BUILD data: //benchmarks:results

from __future__ import annotations

import re

import numpy as np
import pytest

from benchmarks import page_part
from benchmarks.growth import cells
from benchmarks.growth import formulas
from benchmarks.growth import page
from benchmarks.growth import pictures

_ABOUT = dict(machine='A machine', cores=2, kernel='6.0', load_before=0.0,
              python='3.11.0', tensorflow='2.15.1', commit='abc')
_BY_HAND = {
    'about': _ABOUT, 'seed': 0, 'secs': 1000.0, 'not_run': ['what is not'],
    'parts': {
        'workers_1': {cells.ASYNC: {'1': [10.0], '2': [20.0, 18.0, 16.0]}},
        'parameters': {
            cells.BARE: {'100000': [1.0, 2.0, 4.0], '1000000': [10.0, 20.0]},
            cells.ELASTIC: {'100000': [1.5, 2.0, 8.0]}},
        'rows': {
            cells.NO_CLIP: {'100000': [1.0, 3.0]},
            cells.BEYOND: {'100000': [1.5, 3.75]}},
        'towers': {'TowerStrategy': {'1': [30], '2': [50], '4': [90]}}}}


def _tables(text):
  """The cells of all tables, by the part, the row and the column."""
  found, part, columns = {}, None, None
  for line in text.splitlines():
    cut = [each.strip() for each in line.strip('|').split('|')]
    if line.startswith('### '):
      part, columns = line[4:], None
    elif not line.startswith('|'):
      columns = None
    elif columns is None:
      columns = cut[1:]
    elif set(line) != {'|', '-'}:
      found.update({(part, cut[0], column): value
                    for column, value in zip(columns, cut[1:])})
  return found


def _numbers(text):
  return [float(n) for n in re.findall(r'-?[\d.]+(?:e[+-]?\d+)?', text)]


def test_figures_by_hand():
  text = page.PART.section(_BY_HAND)
  found = _tables(text)
  one = ('Workers, 1 parameter server', f'{cells.ASYNC}, steps/s')
  assert found[(*one, '1')] == '10'
  assert found[(*one, '2')] == '18 (16 to 20)'
  assert found[(*one, '4')] == '-'
  # n / y is 0.1 and 2 / 18: 4 / 45 + n / 90.
  assert found[(*one, 'steps/s of n workers')] == (
      'n / (0.0889 + 0.0111 * n); off by up to 0.0%')
  assert found['Parameters', f'{cells.BARE}, ms', '100,000'] == '2 (1 to 4)'
  ratio = ('Parameters', f'{cells.ELASTIC}, ratio')
  assert found[(*ratio, '100,000')] == '1.5 (1 to 2)'
  assert found[(*ratio, 'ms of n parameters')] == '-'  # One size is no line.
  assert found['Rows of a table', f'{cells.BEYOND}, adds ms',
               '100,000'] == '0.625 (0.5 to 0.75)'
  towers = ('Towers', 'TowerStrategy, operations')
  assert found[(*towers, '2')] == '50'
  assert found[(*towers, 'operations of n towers')] == (
      '10 + 20 * n; off by up to 0.0%')
  assert 'Not run: what is not.' in text
  assert 'seed 0, 17 minutes' in text and 'commit abc' in text


def test_the_page_has_what_the_results_say():
  text = page_part.PAGE.read_text(encoding='utf-8')
  assert page.PART.written(text, page.PART.read()) == text
  assert page.PART.written(text, _BY_HAND) != text


def test_without_results_the_page_says_so():
  assert 'Not measured yet: `make bench-growth`' in page.PART.section(None)


def _expected(results, part, curve, size):
  """The rounds of a cell, anew from the numbers of the file."""
  of = results['parts'][part.name]
  own = np.array(of[curve][size])
  if part.base in ('', curve):
    return own
  other = np.array(of[part.base][size])
  return own - other if part.is_added else own / other


def test_every_figure_of_the_page_follows_from_the_results():
  """Anew from the numbers of the file, by other means than the page's."""
  results = page.PART.read()
  text = page_part.PAGE.read_text(encoding='utf-8')
  if results is None:
    assert 'Not measured yet: `make bench-growth`' in text
    return
  found, seen = _tables(text), 0
  parts = {part.name: part for part in cells.PARTS}
  for name, curves in results['parts'].items():
    part = parts[name]
    assert (page_part.PAGE.parent / page.picture(part)).exists()
    for curve, sizes in curves.items():
      [row] = {key[1] for key in found
               if key[0] == part.title and key[1].startswith(f'{curve}, ')
               and key[1].count(',') == curve.count(',') + 1}
      for size in sizes:
        every = _expected(results, part, curve, size)
        shown = _numbers(found[part.title, row, f'{int(size):,}'])
        np.testing.assert_allclose(
            shown, [np.median(every), every.min(), every.max()]
            if len(every) > 1 else every, rtol=1e-3)
        seen += 1
      _check_formula(results, part, curve, found[
          part.title, row, f'{part.unit} of n {part.size}'])
  assert seen > 50


def _check_formula(results, part, curve, shown):
  """Fits anew by weighted polynomials; the numbers shown have 3 digits."""
  if shown == '-':
    return
  sizes = results['parts'][part.name][curve]
  n = np.array([float(size) for size in sizes])
  y = np.array([np.median(
      _expected(results, part, curve, size) if part.is_added
      else sizes[size]) for size in sizes])
  aim = n / y if part.form == 'saturating' else y
  degree = int(part.form != 'constant')
  *slope, level = np.polyfit(n, aim, degree, w=1 / np.abs(aim))
  line = level + (slope[0] * n if slope else 0 * n)
  error = np.abs((n / line if part.form == 'saturating' else line) / y - 1)
  numbers = _numbers(shown.replace('- ', '-').replace('n / (', ''))
  np.testing.assert_allclose(numbers[:-1], [level, *slope], rtol=6e-3)
  assert abs(numbers[-1] - 100 * error.max()) < 0.06


def test_the_check_of_formulas_sees_a_wrong_number():
  part = next(part for part in cells.PARTS if part.name == 'towers')
  right = '10 + 20 * n; off by up to 0.0%'
  _check_formula(_BY_HAND, part, 'TowerStrategy', right)
  for wrong in (right.replace('20', '21'), right.replace('0.0%', '0.2%')):
    with pytest.raises(AssertionError):
      _check_formula(_BY_HAND, part, 'TowerStrategy', wrong)


@pytest.mark.parametrize('form, figures, a, b', [
    ('constant', [5, 5, 5], 5, 0),
    ('linear', [13, 16, 22], 10, 3),
    # n / y is 1 + n / 2.
    ('saturating', [1 / 1.5, 1, 4 / 3], 1, 0.5)])
def test_exact_figures_have_an_exact_formula(form, figures, a, b):
  found = formulas.fit(form, [1, 2, 4], figures)
  np.testing.assert_allclose([found.a, found.b], [a, b], atol=1e-12)
  assert found.error < 1e-12
  np.testing.assert_allclose(found.at(np.array([1, 2, 4])) * np.ones(3),
                             figures)


def test_the_error_is_the_largest_relative_deviation():
  """Of 1 and 3: a (1 / 1 + 1 / 9) = 1 / 1 + 1 / 3, so a is 1.2."""
  found = formulas.fit('constant', [1, 10], [1, 3])
  assert found.a == pytest.approx(1.2)
  assert found.error == pytest.approx(1 - 1.2 / 3)
  assert found.text('n') == '1.2; off by up to 60.0%'


def test_a_line_that_falls_is_shown_with_a_minus():
  text = formulas.fit('linear', [1, 2], [3, 1]).text('workers')
  assert text == '5 - 2 * workers; off by up to 0.0%'


def test_an_unknown_form_is_refused():
  with pytest.raises(ValueError, match='`form` must be one of'):
    formulas.fit('cubic', [1, 2], [3, 4])


@pytest.mark.parametrize('part', page.WRAPPERS, ids=lambda part: part.page.stem)
def test_the_page_of_a_wrapper_has_its_curves(part):
  text = part.page.read_text(encoding='utf-8')
  assert part.written(text, part.read()) == text
  for picture in re.findall(r'\]\((\.\./pictures/growth_\w+\.png)\)', text):
    assert (part.page.parent / picture).exists()


def test_curves_of_a_wrapper_by_hand():
  """Of the parts in the figures by hand, the page of clipping has the rows."""
  shown = {part.page.stem: part.section(_BY_HAND) for part in page.WRAPPERS}
  assert '](../pictures/growth_rows.png)' in shown['variable_clipping']


def test_each_part_with_figures_has_a_picture(tmp_path):
  pictures.write(_BY_HAND, tmp_path)
  written = sorted(path.name for path in (tmp_path / 'pictures').iterdir())
  assert written == ['growth_parameters.png', 'growth_rows.png',
                     'growth_towers.png', 'growth_workers_1.png']
  for path in (tmp_path / 'pictures').iterdir():
    assert path.read_bytes().startswith(b'\x89PNG')
    assert f'(pictures/{path.name})' in page.PART.section(_BY_HAND)


def test_the_same_figures_are_the_same_picture(tmp_path):
  for name in ('a', 'b'):
    pictures.write(_BY_HAND, tmp_path / name)
  one, other = (tmp_path / name / 'pictures/growth_rows.png' for name in 'ab')
  assert one.read_bytes() == other.read_bytes()
