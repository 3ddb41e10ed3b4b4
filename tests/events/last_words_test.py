# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Texts about the end of a task."""

import pytest

from tfplugin.events import last_words
from tfplugin.events import record


@pytest.mark.parametrize('step, saved_step, text', [
    (None, None, 'stopped on request'),
    (2240, None, 'stopped on request at step 2,240'),
    (2240, 2239, 'stopped on request at step 2,240, saved model.ckpt-2239, the '
     'same command continues')])
def test_what_is_known_is_told(step, saved_step, text):
  assert last_words.stopped(step, saved_step) == text


@pytest.mark.parametrize('name, details, text', [
    ('ended', {}, 'finished'),
    ('stopped', {'step': 7, 'saved_step': 6}, 'stopped on request at step 7, '
     'saved model.ckpt-6, the same command continues'),
    ('dying', {'error': 'ValueError', 'message': 'why\nand more'},
     'failed: ValueError: why')])
def test_each_last_event_is_an_end(name, details, text):
  event = record.Event(0.0, 1, 'chief:0', name, 'instant', details)
  assert last_words.describe(event) == text
