# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Conversion of checkpoints between the names of tf.contrib and of tfplugin.

Values and types stay. A variable that was saved in parts is written whole, and
a program with parts can restore it. The names of the variables:

  tf.contrib                            tfplugin
  cond/beta1_power                      beta1_power        drop stale
  VariableClipping/beta1_power          beta1_power        clipping
  global_center_variable/w              w                  elastic average
  local_center_variable/w, local_step   (in no checkpoint) elastic average
  tower_1/dense_1/kernel                (in no checkpoint) towers

All other names, such as slots and steps, are the same in both.
"""

from __future__ import annotations

import collections
import dataclasses
import posixpath
import re
from collections.abc import Callable
from collections.abc import Collection

import numpy as np
import tensorflow as tf

from tfplugin.checkpoints import checkpoint_files
from tfplugin.events import wrapper_names

tf1 = tf.compat.v1

DESTINATIONS = ('tfplugin', 'contrib')
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
  old: str | None
  new: str | None
  reason: str = ''


def migrate(old: str,
            new: str,
            to: str = 'tfplugin',
            wrapper: str | None = None,
            trained: str | None = None) -> list[Change]:
  """Writes a checkpoint `new` from `old`; returns the change of each variable.

  A program that keeps an `ElasticAverageOptimizer` and a Saver of all its
  variables needs no migration: it has the original's names. The decorator, the
  strategy, the swapping saver and a plain model restore centres by the
  variables' own names, and need it.

  `old` is a checkpoint without `.index`, or a directory, whose newest fit
  checkpoint is read. `new` is then a checkpoint or a directory likewise. `to`
  is one of `DESTINATIONS`. Only for 'contrib', `wrapper` is one of
  `WRAPPERS`. Only for its 'elastic_average', `trained` is a
  regular expression that matches a part of the name of each trained variable,
  and of no other.

  Raises ValueError for a wrong argument or an unknown variable, FileExistsError
  if `new` exists, and FileNotFoundError if `old` does not.

  Example:
    >>> from tfplugin.checkpoints import checkpoint_migration
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...   w = tf.compat.v1.get_variable(
    ...       'global_center_variable/w', initializer=2.0)
    ...   session.run(w.initializer)
    ...   old = tf.compat.v1.train.Saver().save(session, folder + '/old')
    >>> changes = checkpoint_migration.migrate(old, folder + '/new')
    >>> float(tf.train.load_variable(folder + '/new', 'w'))
    2.0
  """
  wrapper = wrapper_names.current(wrapper)
  _check(to, wrapper, trained)
  source, target = _paths(old, new)
  reader = tf1.train.load_checkpoint(source)
  names = reader.get_variable_to_shape_map()
  if to == 'tfplugin':
    changes = to_tfplugin(names)
  else:
    changes = to_contrib(
        names, wrapper, lambda name: bool(re.search(trained, name)))
  _write(target, {
      change.new: (reader.get_tensor(change.old) if change.old
                   else np.float32(0)) for change in changes if change.new})
  if source != old:
    tf1.train.update_checkpoint_state(new, posixpath.basename(target))
  return changes


def _check(to: str, wrapper: str | None, trained: str | None) -> None:
  if to not in DESTINATIONS:
    raise ValueError(f'`to` must be one of {", ".join(DESTINATIONS)}. '
                     f'Received: {to!r}')
  if to == 'tfplugin':
    if wrapper is not None or trained is not None:
      raise ValueError(
          '`wrapper` and `trained` must be left out for tfplugin, whose names '
          'follow from the old ones. Received: '
          f'wrapper={wrapper!r}, trained={trained!r}')
    return
  if wrapper not in WRAPPERS:
    raise ValueError(
        '`wrapper` must be given for contrib, as the names do not show it: one '
        f'of {", ".join(WRAPPERS)}. Received: {wrapper!r}')
  if (wrapper == 'elastic_average') != (trained is not None):
    raise ValueError(
        '`trained` must be given for elastic_average, and for nothing else: a '
        'regular expression for the trained variables, which have a centre. '
        f'Received: {trained!r}')
  try:
    re.compile(trained or '')
  except re.error as error:
    raise ValueError(
        f'`trained` must be a regular expression ({error}). Received: '
        f'{trained!r}. `re.escape` makes one of a name.'
    ) from error


def _paths(old: str, new: str) -> tuple[str, str]:
  """Returns the checkpoint to read, and the checkpoint to write."""
  source, target = old, new
  if tf.io.gfile.isdir(old):
    source = checkpoint_files.newest_fit(old)
    target = posixpath.join(new, posixpath.basename(source or ''))
  if not source or not tf.io.gfile.exists(f'{source}.index'):
    raise FileNotFoundError(
        f'OLD: no checkpoint there: {old}. Give a checkpoint, such as '
        'model_dir/model.ckpt-100, or a directory with one.')
  if tf.io.gfile.exists(f'{target}.index'):
    raise FileExistsError(
        f'{target} exists already; nothing was overwritten. Choose another '
        'directory.')
  return source, target


def _write(path: str, values: dict[str, np.ndarray]) -> None:
  """Saves the values; they are fed, as a graph cannot hold 2 GB."""
  folder = posixpath.dirname(path) or '.'
  with tf.Graph().as_default(), tf1.Session() as session:
    tensors = [tf1.placeholder(tf.as_dtype(np.asarray(value).dtype))
               for value in values.values()]
    save = tf.raw_ops.SaveV2(
        prefix=path, tensor_names=list(values),
        shape_and_slices=[''] * len(values), tensors=tensors)
    try:
      tf.io.gfile.makedirs(folder)
      session.run(save, dict(zip(tensors, values.values())))
    except tf.errors.OpError as error:
      raise OSError(
          f'NEW: no checkpoint can be written in {folder}: {error.message}. '
          'Give a path in a directory that you may write.') from error


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
