# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the lock around an update, which no worker holds by its own ops."""

import threading

import pytest
import tensorflow as tf

import tfplugin
from tfplugin.distribute.updates import update_lock
from tfplugin.testing import clusters

tf1 = tf.compat.v1

_LIMIT = 60


def test_two_updates_under_one_lock_exclude_each_other(behavior):
  inside, most = [0], [0]
  guard = threading.Lock()

  def enter_and_leave():
    with guard:
      inside[0] += 1
      most[0] = max(most[0], inside[0])
    threading.Event().wait(0.02)  # Long enough for an overlap to be seen.
    with guard:
      inside[0] -= 1
    return 0.0

  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=0.0)

    def update(grads_and_vars):
      del grads_and_vars
      value = tf1.py_func(enter_and_leave, [], tf.float64, stateful=True)
      with tf.control_dependencies([value]):
        return tf.group(tf1.assign_add(v, 1.0))

    updates = [update_lock.run_locked(v, [(tf.ones([]), v)], update, 'lock')
               for _ in range(4)]
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      threads = [threading.Thread(target=session.run, args=(u,))
                 for u in updates]
      for thread in threads:
        thread.start()
      for thread in threads:
        thread.join(_LIMIT)
        assert not thread.is_alive()
      assert session.run(v) == 4.0
  assert most[0] == 1


def test_lock_is_free_again_after_a_failed_update(behavior):
  with tf.Graph().as_default():
    v = tf1.get_variable('v', initializer=0.0)
    fail = tf1.placeholder(tf.bool, [])

    def update(grads_and_vars):
      del grads_and_vars
      with tf.control_dependencies([tf1.debugging.Assert(~fail, ['failed'])]):
        return tf.group(tf1.assign_add(v, 1.0))

    locked = update_lock.run_locked(v, [(tf.ones([]), v)], update, 'lock')
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      try:
        session.run(locked, {fail: True})
      except tf.errors.InvalidArgumentError:
        pass
      session.run(locked, {fail: False},
                  options=tf1.RunOptions(timeout_in_ms=_LIMIT * 1000))
      assert session.run(v) == 1.0


_WRAPPERS = {
    'drop_stale': lambda opt, w, b: tfplugin.DropStaleGradientOptimizer(
        opt, 100, use_locking=True),
    'drop_stale, not finite': (
        lambda opt, w, b: tfplugin.DropStaleGradientOptimizer(
            opt, 100, use_locking=True, on_nonfinite='drop')),
    'clip': lambda opt, w, b: tfplugin.VariableClippingOptimizer(
        opt, [(w, 1)], 0.5, use_locking=True),
    'clip together': lambda opt, w, b: tfplugin.VariableClippingOptimizer(
        opt, [(w, 1), (b, 0)], 0.5, use_locking=True),
}
_INNER = {
    'sgd': tf1.train.GradientDescentOptimizer,
    'adam': tf1.train.AdamOptimizer,
    'momentum': lambda rate: tf1.train.MomentumOptimizer(rate, 0.9),
}


def _step(wrapper, inner, rate, in_branch=False):
  """Builds a step with dense and sparse gradients on two ps."""
  step = tf1.train.get_or_create_global_step()
  w = tf1.get_variable('w', initializer=tf.ones([4, 3]))
  b = tf1.get_variable('b', initializer=tf.ones([3]))
  rows = tf.nn.embedding_lookup(w, tf.constant([1, 1, 2]))
  loss = tf.reduce_sum(tf.square(rows + b))
  optimizer = _WRAPPERS[wrapper](_INNER[inner](rate(step)), w, b)
  if not in_branch:
    return w, optimizer.minimize(loss, step)
  grads_and_vars = optimizer.compute_gradients(loss)

  def apply():
    with tf.control_dependencies([optimizer.apply_gradients(
        grads_and_vars, step)]):
      return tf.constant(True)

  return w, tf.cond(step >= 0, apply, lambda: False)


def _decaying(step):
  return tf1.train.exponential_decay(0.1, step, 10, 0.9)


@pytest.mark.parametrize('inner, in_branch', [
    *((inner, False) for inner in _INNER), ('sgd', True)])
@pytest.mark.parametrize('wrapper', _WRAPPERS)
def test_a_worker_runs_no_op_while_it_holds_the_lock(
    behavior, wrapper, inner, in_branch):
  cluster = clusters.in_process_cluster(1, num_ps=2)
  with tf.Graph().as_default() as graph:
    with tf1.device(cluster.device_setter(0)):
      w, train_op = _step(wrapper, inner, _decaying, in_branch)
    init = tf1.global_variables_initializer()
  metadata = tf1.RunMetadata()
  with cluster.session(0, graph) as session:
    session.run(init)
    before = session.run(w)
    session.run(train_op, run_metadata=metadata, options=tf1.RunOptions(
        output_partition_graphs=True))
    assert (session.run(w) != before).any()
  nodes = _Partitions(metadata.partition_graphs)
  lock, = nodes.of_type('MutexLock')
  release, = nodes.of_type('ConsumeMutexLock')
  before_release = nodes.upstream(release)
  assert lock in before_release
  # Neither between the two, nor to be waited for by what is. The bit that
  # chooses a branch is sent to each ps, by a send that belongs to the branch.
  early = nodes.upstream(lock)
  late = {key for key in before_release - early
          if not (in_branch and nodes.sends(key, early))}
  assert len(late) > 10
  assert {device for device, _ in late} == {
      '/job:ps/replica:0/task:0/device:CPU:0',
      '/job:ps/replica:0/task:1/device:CPU:0'}


class _Partitions:
  """The graphs that the devices of a cluster run in one step."""

  def __init__(self, graphs):
    self._nodes = {(node.device, node.name): node
                   for graph in graphs for node in graph.node}
    self._senders = {
        (node.attr['tensor_name'].s, node.attr['recv_device'].s): key
        for key, node in self._nodes.items() if node.op.endswith('Send')}

  def of_type(self, op_type):
    return [key for key, node in self._nodes.items() if node.op == op_type]

  def sends(self, key, values):
    """Whether `key` sends one of `values` to another device."""
    return key in self._senders.values() and values.issuperset(
        self._sources(key))

  def upstream(self, key):
    """The nodes that `key` waits for, on all devices, and itself."""
    found, pending = {key}, [key]
    while pending:
      new = set(self._sources(pending.pop())) - found
      found |= new
      pending.extend(new)
    return found

  def _sources(self, key):
    device, _ = key
    node = self._nodes[key]
    if node.op.endswith('Recv'):
      yield self._senders[node.attr['tensor_name'].s, device.encode()]
    for name in node.input:
      yield device, name.lstrip('^').split(':')[0]


@pytest.mark.parametrize('wrapper', _WRAPPERS)
def test_nobody_waits_for_a_worker_whose_learning_rate_is_late(
    behavior, wrapper):
  reached, release = threading.Event(), threading.Event()

  def gate(step):
    reached.set()
    assert release.wait(_LIMIT)
    return 0.1 + 0.0 * float(step)

  def late(step):
    rate = tf1.py_func(gate, [step.read_value()], tf.float64, stateful=True)
    rate.set_shape([])
    return tf.cast(rate, tf.float32)

  cluster = clusters.in_process_cluster(2, num_ps=2)
  sessions, train_ops = [], []
  for index, rate in enumerate((_decaying, late)):
    with tf.Graph().as_default() as graph:
      with tf1.device(cluster.device_setter(index)):
        train_ops.append(_step(wrapper, 'sgd', rate)[1])
      init = tf1.global_variables_initializer()
      step = tf1.train.get_global_step()
      sessions.append(cluster.session(index, graph))
    if not index:
      sessions[0].run(init)
  thread = threading.Thread(target=sessions[1].run, args=(train_ops[1],))
  thread.start()
  try:
    assert reached.wait(_LIMIT)
    for _ in range(3):
      sessions[0].run(train_ops[0])
  finally:
    release.set()
    thread.join(_LIMIT)
  assert sessions[1].run(step) == 4
  for session in sessions:
    session.close()
