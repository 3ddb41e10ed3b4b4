# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A part of the matrix of faults in which each two values meet."""
# BUILD data: //:docs

import dataclasses
import itertools
import os

import pytest

from tests.chaos import cells
from tests.chaos import page
from tests.chaos import play
from tests.helpers import environments
from tfplugin.faults import host_names
from tfplugin.faults import language

_SAMPLE = cells.sample()
_FIELDS = [field.name for field in dataclasses.fields(cells.Cell)]


@pytest.mark.distributed
@pytest.mark.usefixtures('forking')
@pytest.mark.sampled(8)
@pytest.mark.parametrize('cell', _SAMPLE, ids=lambda cell: cell.name)
def test_what_holds_after_every_fault(cell, tmp_path, request):
  if cell.kind in ('cut', 'partition', 'slow_link', 'lossy_link'):
    request.getfixturevalue('filters_allowed')
  if cell.kind == 'upgrade' and environments.other_python() is None:
    pytest.skip(environments.ONE)
  if cell.kind == 'new_address' and not os.access(host_names.HOSTS, os.W_OK):
    pytest.skip('this user cannot name a host')
  play.play(cell, tmp_path)


def _values(chosen, field):
  return {getattr(cell, field) for cell in chosen}


def test_the_matrix_is_large_and_complete():
  matrix = cells.matrix()
  assert len(matrix) >= 250 and len(set(matrix)) == len(matrix)
  assert _values(matrix, 'form') == set(cells.FORMS)
  assert _values(matrix, 'kind') == set(language.KINDS)
  assert _values(matrix, 'phase') == set(language.PHASES)
  assert _values(matrix, 'role') == set(language.JOBS)
  assert _values(matrix, 'num_ps') == {0, 1, 2}
  for cell in matrix:
    fault, *_ = language.parse(cell.fault)
    assert (fault.kind, fault.phase) == (cell.kind, cell.phase)


def test_each_two_values_meet_in_the_part_where_they_can():
  assert len(_SAMPLE) >= 60
  for fields in itertools.combinations(_FIELDS, 2):
    can, do = ({tuple(getattr(cell, f) for f in fields) for cell in chosen}
               for chosen in (cells.possible(), _SAMPLE))
    assert {pair for pair in can - do
            if not cells.is_left_to_the_matrix(pair)} == set()


def test_the_page_is_of_this_matrix():
  text = page.PATH.read_text()
  for cell in cells.matrix():
    assert f'| {cell.form} | {cell.fault} | {cell.num_ps} |' in text
  assert '**no**' not in text


def test_a_page_that_is_read_and_written_again_is_the_same():
  text = page.PATH.read_text()
  again = page.render(page.read(text))
  for part in ('## Minutes of faults', '## Every run'):
    assert again.split(part)[1] == text.split(part)[1]
