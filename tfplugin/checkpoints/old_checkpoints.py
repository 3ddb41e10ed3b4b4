# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names that tf.contrib's wrappers gave to the variables of a checkpoint.

  tf.contrib                            tfplugin
  cond/beta1_power                      beta1_power        drop stale
  VariableClipping/beta1_power          beta1_power        clipping
  global_center_variable/w              w                  elastic average
  local_center_variable/w, local_step   (in no checkpoint) elastic average
  tower_1/dense_1/kernel                (in no checkpoint) towers

All other names, such as slots and steps, are the same in both. The functions
handle names only; `checkpoint_migration` reads and writes values.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Callable
from collections.abc import Collection
from typing import Optional

from tfplugin.events import wrapper_names

WRAPPERS = tuple(sorted(wrapper_names.WRAPPERS))
COUNTER = 'stale_counter'

_CENTER = 'global_center_variable/'
_OBJECTS = ('_CHECKPOINTABLE_OBJECT_GRAPH', '_TRACKABLE_OBJECT_GRAPH')
# Adam has two scalars per optimizer; the originals made them in their scope.
_POWER = re.compile(
    r'(?P<scopes>(?:(?:cond|VariableClipping)(?:_\d+)?/)+)'
    r'(?P<power>beta[12]_power)(?:_\d+)?')
_BARE_POWER = re.compile(r'(?P<power>beta[12]_power)(?:_(?P<number>\d+))?')
_SCOPE = {'drop_stale': 'cond', 'clip': 'VariableClipping'}
_OF_A_WORKER = re.compile(r'local_center_variable/.+|local_step(_\d+)?')
_OF_A_TOWER = re.compile(r'tower_[1-9]\d*/.+')


@dataclasses.dataclass(frozen=True)
class Change:
  """The change of a variable's name.

  Attributes:
    old: The old name; None if the variable is added, with the value 0.
    new: The new name; None if the variable is left out.
    reason: A clause; empty if the name stays.
  """
  old: Optional[str]
  new: Optional[str]
  reason: str = ''


def to_tfplugin(names: Collection[str]) -> list[Change]:
  """Returns the change of each variable of a tf.contrib checkpoint.

  Changes are sorted by the old name. Raises ValueError if two variables would
  get one name, or the meaning of a name is ambiguous.
  """
  _check_kind(names)
  powers = _bare_powers(names)
  changes = []
  for name in sorted(names):
    if name in powers:
      changes.append(Change(name, powers[name], 'as without the wrapper'))
    elif name.startswith(_CENTER):
      changes.append(Change(name, name[len(_CENTER):],
                            'the centre has the name of the variable'))
    elif _CENTER + name in names:
      changes.append(Change(name, None, "a worker's copy begins at the centre"))
    elif _OF_A_WORKER.fullmatch(name):
      changes.append(Change(name, None, 'each worker begins its own'))
    elif _OF_A_TOWER.fullmatch(name):
      changes.append(Change(name, None, 'towers share the variables of the '
                            'first one'))
    else:
      changes.append(Change(name, name))
  return _without_collision(changes)


def to_contrib(names: Collection[str], wrapper: str,
               is_trained: Callable[[str], bool]) -> list[Change]:
  """Returns the changes after which a tf.contrib program can restore.

  `is_trained` takes a name, and returns whether the variable is trained and so
  has a centre; it is called for elastic averaging only. Changes are sorted by
  the old name, and an added counter is last. Raises ValueError if the
  original's name of a variable is ambiguous.
  """
  _check_kind(names)
  changes = []
  for name in sorted(names):
    power = _BARE_POWER.fullmatch(name)
    if power and wrapper in _SCOPE:
      if power['number']:
        raise ValueError(
            f'`old` must have one Adam at most, for {wrapper}. Received: '
            f'{name}, whose scope depends on the other conditions of the '
            'program. Restore it with a Saver that has a `var_list`.')
      changes.append(Change(name, f'{_SCOPE[wrapper]}/{name}',
                            "in the wrapper's scope"))
    elif wrapper == 'elastic_average' and is_trained(name):
      changes.append(Change(name, _CENTER + name, 'is the centre'))
    else:
      changes.append(Change(name, name))
  if wrapper == 'drop_stale' and COUNTER not in names:
    changes.append(Change(None, COUNTER, 'nothing was dropped'))
  return _without_collision(changes)


def _check_kind(names: Collection[str]) -> None:
  found = next((name for name in _OBJECTS if name in names), None)
  if found:
    raise ValueError(
        '`old` must have variables by name, as tf.compat.v1.train.Saver and '
        f'Estimator save them. Received: one with {found}, of '
        'tf.train.Checkpoint or Keras. Restore it with the class that saved '
        'it.')


def _bare_powers(names: Collection[str]) -> dict[str, str]:
  """Returns the new names of Adam's scalars, by the old ones.

  Several scalars are numbered in the order in which they were made, and so are
  scopes.
  """
  matches = {name: _POWER.fullmatch(name) for name in names}
  scoped = {name: match for name, match in matches.items() if match}
  unknown = [name for name, match in scoped.items()
             if 'cond' in match['scopes'] and COUNTER not in names]
  if unknown:
    raise ValueError(
        f'`old` must have {COUNTER}, which drop stale saves beside '
        f'{unknown[0]}. Received: {sorted(names)}. If a `tf.cond` of the '
        'program itself made that name, there is nothing to migrate.')
  of_power = collections.defaultdict(list)
  for name in names:
    match = scoped.get(name) or _BARE_POWER.fullmatch(name)
    if match:
      of_power[match['power']].append(name)
  return {
      name: power + (f'_{number}' if number else '')
      for power, of_one in of_power.items()
      for number, name in enumerate(sorted(
          of_one, key=lambda name: (name in scoped, _numbers(name))))
      if name in scoped}


def _numbers(name: str) -> list[tuple[str, int]]:
  """Returns the scopes of a name and their numbers, as a key for sorting."""
  return [(word, int(number or 0)) for word, number in re.findall(
      r'([A-Za-z]\w*?[A-Za-z])(?:_(\d+))?(?:/|$)', name)]


def _without_collision(changes: list[Change]) -> list[Change]:
  of_new = collections.defaultdict(list)
  for change in changes:
    if change.new is not None:
      of_new[change.new].append(change.old)
  for new, old in of_new.items():
    if len(old) > 1:
      raise ValueError(
          f'`old` must have one variable that becomes {new}. Received: '
          f'{", ".join(map(str, old))}. Rename one of them first.')
  return changes
