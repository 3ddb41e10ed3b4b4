# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the format, and of the page that describes it."""
# BUILD data: //:sources

import json
import pathlib
import re

import pytest

from build_defs import import_graph
from tfplugin.events import record

_ROOT = pathlib.Path(__file__).absolute().parents[2]
_EVENT = record.Event(12.5, 7, 'worker:0', 'saving', 'begin',
                      {'step': 3, 'on': ['ps:0']})


def test_a_line_has_all_and_comes_back():
  line = record.encode(_EVENT)
  assert line.count(b'\n') == 1 and line.endswith(b'\n')
  assert json.loads(line) == {
      'version': 1, 'time': 12.5, 'pid': 7, 'task': 'worker:0',
      'name': 'saving', 'kind': 'begin', 'session': 1, 'step': 3,
      'on': ['ps:0']}
  assert record.decode(line) == _EVENT
  assert _EVENT.step == 3


@pytest.mark.parametrize('change, message', [
    ({'name': 'sleeping'}, "one of the names .* Received: 'sleeping'"),
    ({'kind': 'middle'}, "'saving', 'middle'"),
    ({'details': {'pid': 3}}, r"must not have the name.*\['pid'\]"),
])
def test_what_is_no_event_is_refused(change, message):
  with pytest.raises(ValueError, match=message):
    record.encode(_EVENT._replace(**change))


@pytest.mark.parametrize('line', [b'{"version": 1, "ti', b'[1]', b'{}',
                                  b'{"version": 1, "time": 1}', b'\xff'])
def test_what_is_no_line_is_refused(line):
  with pytest.raises(ValueError):
    record.decode(line)


def test_another_version_is_passed_over():
  assert record.decode(b'{"version": 2, "new": "format"}') is None


@pytest.mark.parametrize('before, event, is_new', [
    ({'pid': 1}, {'pid': 2}, True), ({}, {}, False),
    # In a container each process has the pid 1.
    ({}, {'name': 'coming_back', 'details': {'what': 'process'}}, True),
    ({}, {'name': 'coming_back', 'details': {'what': 'session'}}, False),
    ({'name': 'training', 'kind': 'instant'}, {'name': 'starting'}, True),
    ({'name': 'ended', 'kind': 'instant'}, {'name': 'starting'}, True),
    ({'name': 'training', 'kind': 'end'}, {'name': 'starting'}, False),
    ({'name': 'coming_back', 'details': {'what': 'process'}},
     {'name': 'starting'}, False)])
def test_which_process_wrote_an_event(before, event, is_new):
  pair = [_EVENT._replace(**{'details': {}, **changes})
          for changes in (before, event)]
  assert record.is_new_process(*pair) is is_new
  assert len(record.by_process(pair)) == 1 + is_new


@pytest.mark.parametrize('name, details, is_done', [
    ('ended', {}, True), ('training', {'ends_task': True}, True),
    ('training', {}, False), ('stopped', {}, False)])
def test_which_events_are_of_work_that_is_done(name, details, is_done):
  event = _EVENT._replace(name=name, kind='end', details=details)
  assert record.is_done(event) is is_done


def _page():
  return (_ROOT / 'docs/events.md').read_text(encoding='utf-8')


def test_the_page_has_the_names_and_kinds_and_no_others():
  section = _page().partition('## The names')[2].partition('\n## ')[0]
  rows = [line.split('|')[1:4] for line in section.splitlines()
          if line.startswith('| `')]
  assert tuple(row[0].strip(' `') for row in rows) == record.NAMES
  assert {kind for row in rows for kind in row[1].strip().split(', ')} == set(
      record.KINDS)


def test_the_page_has_the_common_keys():
  section = _page().partition('every line has')[2].partition('\n## ')[0]
  keys = re.findall(r'^\| `(\w+)`', section, re.M)
  assert keys == [*json.loads(record.encode(_EVENT._replace(details={}))),
                  'step']


def test_the_layer_imports_no_tensorflow():
  files = [file for file in import_graph.python_files(_ROOT)
           if file.startswith('tfplugin/events/')]
  assert len(files) > 3
  assert not [file for file in files if 'tensorflow' in
              import_graph.needs(_ROOT, file).distributions]


def test_each_name_is_written_somewhere():
  sources = ''.join(
      (_ROOT / file).read_text(encoding='utf-8')
      for file in import_graph.python_files(_ROOT)
      if file.startswith('tfplugin/') and 'events/record' not in file)
  written = set(re.findall(
      r"(?:\.write|\bwrite|\.span|\bspan)\(\s*'(\w+)'", sources))
  assert written >= set(record.NAMES)


@pytest.mark.parametrize('step, saved_step, text', [
    (None, None, 'stopped on request'),
    (2240, None, 'stopped on request at step 2,240'),
    (2240, 2239, 'stopped on request at step 2,240, saved model.ckpt-2239, the '
     'same command continues')])
def test_what_is_known_is_told(step, saved_step, text):
  assert record.describe_stop(step, saved_step) == text


@pytest.mark.parametrize('name, details, text', [
    ('ended', {}, 'done'),
    ('stopped', {'step': 7, 'saved_step': 6}, 'stopped on request at step 7, '
     'saved model.ckpt-6, the same command continues'),
    ('dying', {'error': 'ValueError', 'message': 'why\nand more'},
     'failed: ValueError: why')])
def test_each_last_event_is_an_end(name, details, text):
  event = record.Event(0.0, 1, 'chief:0', name, 'instant', details)
  assert record.describe_end(event) == text
