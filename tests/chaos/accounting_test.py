# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sums of batches in runs that were made up: one batch more or less is seen."""

import pytest

from tests.chaos import accounting


def _task(*notes):
  """Notes of (time, kind, counted)."""
  return [accounting.Note(time, 1, None, kind, counted)
          for time, kind, counted in notes]


def _steps(times, first):
  """A session that begins at `first`, and steps that all end."""
  return _task((times[0], accounting.SESSION, first), *(
      note for number, time in enumerate(times) for note in (
          (time, accounting.BEGUN, 0),
          (time, accounting.ENDED, first + number))))


_UNENDED = _task((9, accounting.BEGUN, 0))


@pytest.mark.parametrize('final, holds', [
    (4, False), (5, True), (6, True), (7, False)])
def test_a_batch_without_an_end_is_counted_or_not(final, holds):
  notes = {'chief-0': _steps([1, 2, 3], 0),
           'worker-0': _steps([1, 2], 0) + _UNENDED +
                       _task((9, accounting.SESSION, 5))}
  if holds:
    accounting.check(notes, [], final)
  else:
    with pytest.raises(AssertionError, match='5 steps ended and 6'):
      accounting.check(notes, [], final)


@pytest.mark.parametrize('final, holds', [(2, False), (3, True), (4, False)])
def test_a_drop_that_only_the_task_counts_is_in_no_count(final, holds):
  notes = {'chief-0': _steps([1, 2, 3], 0) + _task(
      (4, accounting.BEGUN, 0), (4, accounting.DROPPED, 3))}
  if holds:
    accounting.check(notes, [], final)
  else:
    with pytest.raises(AssertionError, match='3 steps ended and 3 began'):
      accounting.check(notes, [], final)


def test_a_session_has_one_step_without_an_end_at_most():
  notes = {'chief-0': _steps([1, 2], 0) + _UNENDED}
  with pytest.raises(AssertionError, match='3 steps began and 2 ended in 1'):
    accounting.check(notes, [], 2)


# Of 5 steps 3 were lost with the server. The worker reads the count first.
@pytest.mark.parametrize('restored, seen, final, holds', [
    (2, 4, 6, True), (2, 4, 5, False), (3, 4, 7, True), (2, 2, 6, False),
    (2, 6, 6, False)])
def test_a_restore_begins_a_new_count(restored, seen, final, holds):
  notes = {
      'chief-0': _steps([1, 2, 3], 0) + _steps([7, 8], restored + 1),
      'worker-0': _steps([2, 3], 0) + _task((3.5, accounting.SESSION, seen)) +
                  _steps([6, 7], restored)}
  if holds:
    accounting.check(notes, [5.0], final)
  else:
    with pytest.raises(AssertionError, match='Span [12] of 2'):
      accounting.check(notes, [5.0], final)


@pytest.mark.parametrize('restored, is_set_back', [(2, True), (5, False)])
def test_a_chief_that_comes_back_may_set_the_count_back(
    restored, is_set_back):
  notes = {'chief-0': _steps([1, 3], 0) + _steps([7, 8], restored),
           'worker-0': _steps([1, 2, 4], 1)}
  assert accounting.is_set_back(notes, 6) == is_set_back
  assert not accounting.is_set_back(notes, 9)
