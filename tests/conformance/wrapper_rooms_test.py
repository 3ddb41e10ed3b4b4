# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks that no wrapper imports another one, and that walks are short."""
# BUILD data: //:sources

from __future__ import annotations

import pathlib

import pytest

from build_defs import gradient_walks
from build_defs import import_graph

_ROOT = pathlib.Path(__file__).absolute().parents[2]
_LAYERS = ('distribute', 'optimizers', 'hooks', 'estimator')

# The files of each wrapper, as beginnings of paths in tfplugin/.
_ROOMS = {
    'clipping': ('distribute/clipping/', 'optimizers/variable_clipping',
                 'estimator/clip_variables'),
    'elastic': ('distribute/elastic/', 'optimizers/elastic_',
                'hooks/elastic_', 'estimator/elastic_'),
    'shards': ('distribute/shards/', 'optimizers/cross_shard',
               'estimator/cross_shard', 'estimator/shard',
               'estimator/tpu_shards'),
    'staleness': ('distribute/staleness/', 'optimizers/drop_stale_',
                  'estimator/drop_stale_'),
    'towers': ('distribute/towers/', 'optimizers/tower', 'estimator/replicate'),
}

# Imports out of a room, or into a room from shared code, and why.
_ALLOWED = {
    ('shards', 'towers'): 'the shards of one process are towers',
    **{('hooks/summary_hooks.py', room): 'one class writes the numbers of both'
       for room in ('clipping', 'staleness')},
}


def _room(file: str) -> str | None:
  """Returns the wrapper that has `file`, or None where it is shared."""
  found = [room for room, starts in _ROOMS.items() if file.startswith(starts)]
  assert len(found) <= 1, file
  return found[0] if found else None


def _files() -> list[str]:
  """Returns the files of the layers that know wrappers, without packages."""
  files = (file.removeprefix('tfplugin/')
           for file in import_graph.python_files(_ROOT)
           if file.startswith('tfplugin/'))
  return [file for file in files if file.split('/')[0] in _LAYERS
          and not file.endswith('__init__.py')]


def _crossings() -> dict:
  """Returns `(from, into)` of imports that enter a room, with the files."""
  crossings = {}
  for file in _files():
    for other in import_graph.needs(_ROOT, f'tfplugin/{file}').imported:
      into = _room(other.removeprefix('tfplugin/'))
      if into not in (None, _room(file)):
        crossings.setdefault((_room(file) or file, into), []).append(
            (file, other))
  return crossings


def test_a_wrapper_is_imported_by_itself_alone():
  wrong = {key: files for key, files in _crossings().items()
           if key not in _ALLOWED}
  assert not wrong, 'move the part that both need out of the wrappers'


def test_what_is_allowed_is_needed():
  assert not set(_ALLOWED) - set(_crossings())


def test_every_room_has_files():
  assert not [start for starts in _ROOMS.values() for start in starts
              if not any(file.startswith(start) for file in _files())]


# The files, and the pairs that call each other in both directions, through
# which a step is built. Must not grow.
_LONGEST = {'clip': (13, 0), 'drop_stale': (17, 0), 'elastic_average': (24, 0),
            'towers': (10, 1), 'cross_shard': (18, 4)}


@pytest.mark.parametrize('wrapper', _LONGEST)
def test_a_step_is_built_through_few_files(wrapper):
  walk = gradient_walks.walk_of(wrapper)
  files, pairs = _LONGEST[wrapper]
  assert len(walk.files) <= files, walk.files
  assert len(walk.pairs) <= pairs, walk.pairs


def test_a_walk_counts_calls_between_files():
  walk = gradient_walks.Walk()
  walk.calls.update([('a.py', 'b.py'), ('b.py', 'a.py'), ('b.py', 'c.py')])
  assert walk.files == ['a.py', 'b.py', 'c.py']
  assert walk.pairs == [('a.py', 'b.py')]
