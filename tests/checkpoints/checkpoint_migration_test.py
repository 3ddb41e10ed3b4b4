# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that tf.contrib saved on TensorFlow 1.15.5 go on here."""

from __future__ import annotations

import json
import pathlib
import shutil
import types

import numpy as np
import pytest
import tensorflow as tf

from testdata.contrib_checkpoints import programs
from tfplugin import contrib
from tfplugin.checkpoints import checkpoint_migration

tf1 = tf.compat.v1

_RECORDED = pathlib.Path(programs.__file__).parent
_AFTER = json.loads((_RECORDED / 'after.json').read_text(encoding='utf-8'))
# A few roundings a step, of six steps; pow is rounded otherwise on 1.15.
_EPSILONS = 64
# There each tower trained a layer of its own, and the first one's is kept: it
# goes on here with the gradient of the whole batch.
_DIVERGES = {'towers_keras'}
_WRAPPERS = {'of_one_shard': contrib.tpu.CrossShardOptimizer}
_CONTRIB = types.SimpleNamespace(
    opt=contrib.opt, estimator=contrib.estimator, tf_estimator=tf.estimator,
    **_WRAPPERS)


def _program(name):
  return programs.Program(tf1, _CONTRIB, programs.CASES[name])


def _values(checkpoint):
  return {name: tf.train.load_variable(checkpoint, name)
          for name, _ in tf.train.list_variables(checkpoint)}


@pytest.fixture(name='old', params=sorted(programs.CASES))
def _old(request, tmp_path):
  """A copy of a recorded checkpoint, whose directory has the case's name."""
  folder = tmp_path / request.param
  shutil.copytree(_RECORDED / request.param, folder)
  return folder / 'model.ckpt-3'


def _expect(name, values):
  for key, expected in _AFTER[name].items():
    np.testing.assert_allclose(
        values[key], expected, atol=0,
        rtol=_EPSILONS * np.finfo(np.float32).eps, err_msg=key)


@pytest.mark.filterwarnings('ignore:.*one shard')
def test_training_goes_on_as_it_did_there(old, tmp_path):
  name = old.parent.name
  new = str(tmp_path / 'new' / 'model.ckpt-3')
  checkpoint_migration.migrate(str(old), new)
  program = _program(name)
  if 'elastic' in name:  # Of the step too; the original left it out.
    program.saver = _centers_saver(program, new)
  values = program.run(checkpoint=new)
  if name not in _DIVERGES:
    _expect(name, values)
  assert values['global_step'] == _AFTER[name]['global_step']


def _centers_saver(program, checkpoint):
  """Restores centres under the variables' own names."""
  saved = dict(tf.train.list_variables(checkpoint))
  with program.graph.as_default():
    return tf1.train.Saver({
        name: variable for name, variable in program.values.items()
        if name in saved})


def test_there_and_back_is_what_it_was(old, tmp_path):
  name = old.parent.name
  wrapper = programs.CASES[name]['wrapper']
  new, back = str(tmp_path / 'new'), str(tmp_path / 'back')
  changes = checkpoint_migration.migrate(str(old), new)
  if name == 'variable_clipping_twice':  # See test_a_second_adam_...
    return
  checkpoint_migration.migrate(
      new, back, to='contrib', wrapper=wrapper,
      trained='.*(table|kernel)$' if 'elastic' in name else None)
  before, after = _values(str(old)), _values(back)
  if name == 'elastic_average_swapped':  # Of centres, under their own names.
    before = {f'global_center_variable/{key}': value
              for key, value in before.items()}
  for change in changes:
    if change.new is None:
      del before[change.old]
  assert set(before) == set(after)
  for key, value in before.items():
    assert value.dtype == after[key].dtype
    np.testing.assert_array_equal(value, after[key], err_msg=key)


def test_a_directory_becomes_a_directory(tmp_path):
  old = tmp_path / 'old'
  shutil.copytree(_RECORDED / 'drop_stale', old)
  listed = sorted(old.iterdir())
  checkpoint_migration.migrate(str(old), str(tmp_path / 'new'))
  assert tf.train.latest_checkpoint(str(tmp_path / 'new')) == str(
      tmp_path / 'new' / 'model.ckpt-3')
  assert sorted(old.iterdir()) == listed


def test_parts_are_written_whole(tmp_path):
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('w', [4, 2], initializer=tf1.ones_initializer(),
                     partitioner=tf1.fixed_size_partitioner(2))
    session.run(tf1.global_variables_initializer())
    old = tf1.train.Saver().save(session, str(tmp_path / 'old'))
  checkpoint_migration.migrate(old, str(tmp_path / 'new'))
  with tf.Graph().as_default(), tf1.Session() as session:
    whole = tf1.get_variable('w', [4, 2])
    tf1.train.Saver().restore(session, str(tmp_path / 'new'))
    np.testing.assert_array_equal(session.run(whole), np.ones([4, 2]))


@pytest.mark.parametrize('error, match, arguments', [
    (FileNotFoundError, 'OLD: no checkpoint there: .*none', {'old': 'none'}),
    (FileExistsError, 'exists already; nothing was', {'new': 'model.ckpt-3'}),
    (ValueError, '`to` must be one of', {'to': 'pytorch'}),
    (ValueError, '`wrapper` must be given', {'to': 'contrib'}),
    (ValueError, '`wrapper` and `trained` must be left', {'trained': 'w'}),
    (ValueError, '`trained` must be given', {
        'to': 'contrib', 'wrapper': 'elastic_average'}),
    (ValueError, '`trained` must be given', {
        'to': 'contrib', 'wrapper': 'towers', 'trained': 'w'}),
    (ValueError, '`trained` must be a regular expression', {
        'to': 'contrib', 'wrapper': 'elastic_average', 'trained': '('}),
    (OSError, 'NEW: no checkpoint can be written in .*index: .* Give a', {
        'new': 'model.ckpt-3.index/new'}),  # The folder is a file.
])
def test_bad_arguments_write_nothing(tmp_path, error, match, arguments):
  folder = tmp_path / 'drop_stale'
  shutil.copytree(_RECORDED / 'drop_stale', folder)
  listed = sorted(folder.iterdir())
  paths = {key: str(folder / arguments.get(key, value)) for key, value in (
      ('old', 'model.ckpt-3'), ('new', 'new'))}
  with pytest.raises(error, match=match):
    checkpoint_migration.migrate(**{**arguments, **paths})
  assert sorted(folder.iterdir()) == listed
