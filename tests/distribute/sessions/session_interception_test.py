# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what meets a Saver and a SessionManager, and what does not."""

import inspect

import pytest
import tensorflow as tf

from tfplugin.distribute.sessions import session_interception

tf1 = tf.compat.v1


REPLACED = [
    (tf.Graph, 'finalize'),
    (tf1.train.Saver, 'save'),
    (tf1.train.SessionManager, 'prepare_session'),
    (tf1.train.SessionManager, 'wait_for_session'),
    (next(c for c in tf1.Session.__mro__ if 'close' in vars(c)), 'close')]


@pytest.fixture(autouse=True)
def fixture_methods_of_tensorflow(monkeypatch):
  """Each test begins with TensorFlow's own: an earlier one has replaced them.

  The order in which libraries come would be that of the tests.
  """
  for owner, name in REPLACED:
    monkeypatch.setattr(owner, name, inspect.unwrap(getattr(owner, name)))


class _Guard:
  """Notes what it meets, and lets it pass."""

  def __init__(self):
    self.noted = []

  def register(self):
    session_interception.in_place_of_save(self.save)
    session_interception.in_place_of_start(self.prepare_session)

  def save(self, save, saver, session, arguments):
    self.noted.append(('save', arguments))
    return save(saver, session, **arguments)

  def prepare_session(self, prepare, arguments):
    self.noted.append(('prepare', sorted(arguments)))
    return prepare(**arguments)


class _OwnSaver(tf1.train.Saver):
  """A class of a user, which hands the call on."""

  def save(self, *args, **kwargs):
    return super().save(*args, **kwargs)


def test_a_guarded_graph_is_met(behavior, tmp_path):
  with tf.Graph().as_default(), tf1.Session() as session:
    guard = _Guard()
    guard.register()
    tf1.get_variable('v', initializer=1.0)
    saver = _OwnSaver()
    session.run(tf1.global_variables_initializer())
    path = saver.save(session, f'{tmp_path}/own', 5)
    prepared = tf1.train.SessionManager().prepare_session(
        '', saver=saver, checkpoint_filename_with_path=path)
    prepared.close()
  assert path == f'{tmp_path}/own-5'
  assert guard.noted == [
      ('save', {'save_path': f'{tmp_path}/own', 'global_step': 5}),
      ('prepare', ['checkpoint_filename_with_path', 'master', 'saver'])]


@pytest.mark.parametrize('has_guard', [False, True])
def test_a_started_session_is_given_to_functions(behavior, has_guard):
  del behavior
  with tf.Graph().as_default() as graph:
    tf1.get_variable('v', initializer=1.0)
    if has_guard:
      _Guard().register()
    given = []
    session_interception.after_start(lambda session, arguments: given.append(
        (session, sorted(arguments), session_interception.is_starting(graph))))
    manager = tf1.train.SessionManager(
        local_init_op=tf1.global_variables_initializer())
    with manager.prepare_session('') as session:
      assert given == [(session, ['master'], True)]
    assert not session_interception.is_starting(graph)
  with tf.Graph().as_default():
    tf1.get_variable('v', initializer=1.0)
    manager = tf1.train.SessionManager(
        local_init_op=tf1.global_variables_initializer())
    manager.prepare_session('').close()
  assert len(given) == 1


def test_another_graph_and_eager_execution_are_not_met(behavior, tmp_path):
  guard = _Guard()
  with tf.Graph().as_default():
    guard.register()
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.get_variable('v', initializer=1.0)
    session.run(tf1.global_variables_initializer())
    assert tf1.train.Saver().save(session, f'{tmp_path}/own') == (
        f'{tmp_path}/own')
  if tf.executing_eagerly():
    saver = tf1.train.Saver([tf.Variable(1.0, name='w')])
    saver.save(None, f'{tmp_path}/eager')
  assert not guard.noted


def _monitored(log, owner=tf1.train.Saver, name='save'):
  """Returns what replaces a method, as monitoring libraries write it."""
  original = getattr(owner, name)

  def replacement(of_theirs, *args, **kwargs):
    log.append('begin')
    result = original(of_theirs, *args, **kwargs)
    log.append('end')
    return result

  return replacement


@pytest.mark.parametrize('order', ['before', 'after', 'around'])
def test_a_replacement_of_another_library_is_called_once(
    order, monkeypatch, tmp_path):
  log = []
  if order != 'after':
    # As in a program that imports the library first.
    monkeypatch.setattr(tf1.train.Saver, 'save', _monitored(log))
  with tf.Graph().as_default(), tf1.Session() as session:
    guard = _Guard()
    guard.register()
    if order != 'before':
      monkeypatch.setattr(tf1.train.Saver, 'save', _monitored(log))
      guard.register()
    tf1.get_variable('v', initializer=1.0)
    session.run(tf1.global_variables_initializer())
    path = tf1.train.Saver().save(session, f'{tmp_path}/own', 5)
  assert path == f'{tmp_path}/own-5'
  assert guard.noted == [
      ('save', {'save_path': f'{tmp_path}/own', 'global_step': 5})]
  num_around = 2 if order == 'around' else 1
  assert log == ['begin'] * num_around + ['end'] * num_around


def test_a_replacement_that_was_taken_back_is_made_again(monkeypatch, tmp_path):
  with tf.Graph().as_default(), tf1.Session() as session:
    guard = _Guard()
    with monkeypatch.context() as patch:
      patch.setattr(tf1.train.Saver, 'save', _monitored([]))
      guard.register()
    guard.register()
    tf1.get_variable('v', initializer=1.0)
    session.run(tf1.global_variables_initializer())
    tf1.train.Saver().save(session, f'{tmp_path}/own')
  assert guard.noted == [('save', {'save_path': f'{tmp_path}/own'})]


@pytest.mark.parametrize('is_before', [True, False], ids=['before', 'after'])
@pytest.mark.parametrize('owner, name', REPLACED[2:],
                         ids=[name for _, name in REPLACED[2:]])
def test_any_other_method_stands_beside_a_replacement(
    owner, name, is_before, monkeypatch):
  log, noted = [], []

  def replace():
    monkeypatch.setattr(owner, name, _monitored(log, owner, name))

  def close(do):
    noted.append('close')
    do()

  with tf.Graph().as_default() as graph:
    if is_before:
      replace()
    guard = _Guard()
    guard.register()
    session_interception.before_start(lambda: noted.append('start'))
    session_interception.in_place_of_close(close)
    if not is_before:
      replace()
    variable = tf1.get_variable('v', initializer=1.0)
    manager = tf1.train.SessionManager(graph=graph)
    if name == 'wait_for_session':
      session = manager.wait_for_session('')
    else:
      session = manager.prepare_session('', variable.initializer)
      assert guard.noted == [('prepare', ['init_op', 'master'])]
    session.close()
  assert noted == ['start', 'close']
  assert log == ['begin', 'end']


class _Makes(tf1.train.SessionRunHook):
  """Makes a variable when it begins, as hooks that stop early do."""

  def __init__(self, name):
    self._name = name

  def begin(self):
    tf1.get_variable(self._name, initializer=1.0)


class _Lists(tf1.train.SessionRunHook):
  """Notes the variables of the complete graph, and adds an op."""

  def __init__(self):
    self.found = []

  def begin(self):
    session_interception.on_completion(self._list)

  def _list(self):
    assert not tf1.get_default_graph().finalized
    tf.constant(1.0)
    self.found.append([v.op.name for v in tf1.global_variables()])


class _OwnScaffold(tf1.train.Scaffold):
  """Finalizes a graph without TensorFlow's help."""

  def finalize(self):
    if self.init_op is None:
      self._init_op = tf1.global_variables_initializer()
    tf1.get_default_graph().finalize()
    return self


@pytest.mark.parametrize('scaffold', [tf1.train.Scaffold, _OwnScaffold])
def test_a_complete_graph_has_the_variables_of_all_hooks(behavior, scaffold):
  first, last, own = _Lists(), _Lists(), scaffold()
  with tf.Graph().as_default():
    step = tf1.train.create_global_step()
    with tf1.train.MonitoredSession(
        tf1.train.ChiefSessionCreator(own),
        [first, _Makes('a'), last, _Makes('b')]) as session:
      session.run(step)
      # A new session after a failure: the graph was complete before.
      own.finalize()
  assert first.found == last.found == [['global_step', 'a', 'b']]


def test_a_graph_that_is_never_finalized_is_complete_at_its_first_session(
    behavior):
  hook = _Lists()
  with tf.Graph().as_default() as graph:
    hook.begin()
    variable = tf1.get_variable('v', initializer=1.0)
    manager = tf1.train.SessionManager(graph=graph)
    for _ in range(2):
      manager.prepare_session('', variable.initializer).close()
  assert hook.found == [['v']]


def test_a_graph_without_such_a_function_is_finalized_as_ever(behavior):
  with tf.Graph().as_default():
    _Lists().begin()
  with tf.Graph().as_default() as graph:
    graph.finalize()
    assert graph.finalized and not graph.get_operations()
