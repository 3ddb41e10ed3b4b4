# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parts of variables and copies of variables, as checkpoints see them."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from collections.abc import Sequence

import tensorflow as tf

# Writes the file `checkpoint` with paths relative to it, as a Saver does.
from tensorflow.python.checkpoint import checkpoint_management

# It decides whether a variable has a copy per device.
from tensorflow.python.distribute import distribute_utils

# TensorFlow's mirrored variables, and the op by which they are saved.
from tensorflow.python.distribute import values

# The key of a variable's value in a checkpoint of objects.
from tensorflow.python.trackable.base import (
  VARIABLE_VALUE_KEY as VARIABLE_VALUE_KEY,
)

# `Saver` and `Checkpoint` save a variable by such an object.
from tensorflow.python.training.saving import saveable_object

from tfplugin._tf_internals import op_types

tf1 = tf.compat.v1


def set_save_slice_info(variable: tf.Variable, save_slice_info) -> None:
  """Marks `variable` as a slice of a partitioned variable, for the Saver."""
  variable._set_save_slice_info(save_slice_info)


def save_slice_info_of(variable: tf.Variable):
  """Returns the `SaveSliceInfo` of a part, or None for a whole variable."""
  return variable._get_save_slice_info()


def variables_by_saved_name(var_list: Iterable) -> dict:
  """Returns a dict from a Saver's names to variables, or to lists of parts.

  `var_list` has variables, whole or partitioned, and saveable objects. Raises
  TypeError for something else, and ValueError if two variables have the same
  name. TensorFlow's own function is private.
  """
  named = {}
  for item in _flat(var_list):
    info = save_slice_info_of(item) if isinstance(item, tf.Variable) else None
    if info is not None:
      named.setdefault(info.full_name, []).append(item)
      continue
    name = item.op.name if isinstance(item, tf.Variable) else item.name
    if named.setdefault(name, item) is not item:
      raise ValueError('`var_list` must not hold two variables of one name. '
                       f'Received: {name} twice. Pass a dictionary from names '
                       'to variables.')
  return named


def _flat(var_list: Iterable) -> list:
  """Returns variables, parts of variables and saveable objects."""
  flat = []
  for item in var_list:
    if isinstance(item, tf.Variable) or hasattr(item, 'specs'):
      flat.append(item)  # A variable, or a SaveableObject.
    elif isinstance(item, Iterable) and not isinstance(item, str):
      flat.extend(item)
    else:
      raise TypeError('`var_list` must hold variables. '
                      f'Received: {item!r}')
  return flat


def split_of(variable: tf.Variable):
  """Returns (key of all parts, split axes) of a variable's part, or None."""
  # A weak reference; eager variables need not have unique names.
  whole = getattr(variable, '_sharded_container', lambda: None)()
  if whole is not None:
    return id(whole), (0,)
  variable = getattr(variable, '_primary', variable)
  info = getattr(variable, '_save_slice_info', None)
  if info is None:
    return None
  axes = tuple(axis for axis, (full, part) in enumerate(
      zip(info.full_shape, info.var_shape)) if full != part)
  return info.full_name, axes


def list_checkpoint(saver: tf1.train.Saver, path: str,
                    latest_filename: str | None,
                    meta_graph_suffix: str) -> None:
  """Does the part of `Saver.save` that `write_state=False` leaves out.

  The checkpoint `path` becomes the newest one. `latest_filename` None is
  `checkpoint`. `meta_graph_suffix` names the graph files that are deleted with
  the oldest checkpoint.
  """
  saver._RecordLastCheckpoint(path)
  checkpoint_management.update_checkpoint_state_internal(
      save_dir=os.path.dirname(path), model_checkpoint_path=path,
      all_model_checkpoint_paths=saver.last_checkpoints,
      latest_filename=latest_filename or 'checkpoint',
      save_relative_paths=saver._save_relative_paths)
  saver._MaybeDeleteOldCheckpoints(meta_graph_suffix)


class CopiesSaveable(saveable_object.SaveableObject):
  """Saveable that saves one variable, and restores it into several."""

  def __init__(self, copies: Sequence[tf.Variable], primary: tf.Variable,
               name: str):
    """Stores the copies to restore and the primary to save as `name`."""
    self._copies = copies
    spec = saveable_object.SaveSpec(
        primary.read_value, '', name, dtype=primary.dtype,
        device=primary.device)
    super().__init__(primary.read_value, [spec], name)

  def restore(self, restored_tensors, restored_shapes):
    """Returns an op that assigns the restored value to every variable."""
    del restored_shapes
    restored, = restored_tensors
    return tf.group(*[v.assign(restored, read_value=False)
                      for v in self._copies])


def saveables_of_copies(copies: Sequence[tf.Variable], primary: tf.Variable,
                        default_name: str) -> dict:
  """Returns a variable's saveables, as checkpoints of objects request them.

  `primary` is saved, and `copies` are restored. `default_name` is the key in a
  checkpoint that passes no name.
  """

  def saveable(name=''):
    return CopiesSaveable(copies, primary, name or default_name)

  return {VARIABLE_VALUE_KEY: saveable}


class _SlicedVariable(saveable_object.SaveableObject):
  """A variable of several devices that a Saver saves as a slice.

  A Saver reads and restores slices of a partitioned variable through their
  handle, but several devices have no common handle. It asks a SaveableObject
  for the value instead.
  """

  @property
  def specs(self):
    return self._saveable.specs

  def restore(self, restored_tensors, restored_shapes):
    return self._saveable.restore(restored_tensors, restored_shapes)

  @functools.cached_property
  def _saveable(self):
    info = self._get_save_slice_info()
    saveable = self._gather_saveables_for_checkpoint()[VARIABLE_VALUE_KEY](
        info.full_name)
    for spec in saveable.specs:
      spec.slice_spec = info.spec
    return saveable


class _MirroredSlice:
  """A mirrored variable that a Saver saves, and a warm start finds, as a slice.

  Both identify slices by the name of the whole variable, except
  SaveableObjects. They restore the op of a reference variable with `assign`,
  which reaches all copies. They restore other variables through the handle.
  """

  @property
  def op(self):
    """The op of the first copy; outside of replicas, a stand-in for it."""
    op = super().op
    if tf.distribute.has_strategy() and tf.distribute.get_replica_context():
      return op
    return values.DistributedVarOp(op.name, op.graph, op.traceback,
                                   op_types.REFERENCE)


class _SliceableVariable:
  """A mixin in front of the class of a variable of several devices."""

  @property
  def initializer(self):
    """The initialiser of all copies, or of a warm start.

    TensorFlow asks whether there is one by its truth value. With one copy, the
    assignment of a warm start is a tensor, which has none in a graph.
    """
    own = self._initializer_op
    return super().initializer if own is None else own

  def _set_save_slice_info(self, save_slice_info):
    super()._set_save_slice_info(save_slice_info)
    kind = type(self)
    if issubclass(kind, (_MirroredSlice, _SlicedVariable)):
      return  # Of another shard, which takes the same part.
    self.__class__ = (
        subclass(_MirroredSlice, kind)
        if issubclass(kind, values.MirroredVariable) else
        subclass(kind, _SlicedVariable))


def mix_in(variable: tf.Variable, mixin: type, **attributes: object) -> None:
  """Puts a class before that of `variable`, and sets attributes of it."""
  variable.__class__ = subclass(mixin, type(variable))
  vars(variable).update(attributes)


@functools.cache
def subclass(*bases: type) -> type:
  """Returns one class for the same bases, named like the variable's class."""
  (variable,) = [base for base in bases if issubclass(base, tf.Variable)]
  return type(variable.__name__, bases, {})


def make_sliceable(variable: tf.Variable) -> None:
  """Makes a variable of several devices usable as a part of another one.

  TensorFlow's strategies with a copy per device have no partitioned variables,
  as a Saver could not save them. Variables that are not distributed, or not
  made in a graph, stay as they are.
  """
  if (distribute_utils.is_distributed_variable(variable) and
      not tf1.executing_eagerly_outside_functions()):
    mix_in(variable, _SliceableVariable)
