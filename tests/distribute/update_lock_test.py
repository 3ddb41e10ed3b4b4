# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the lock around an update."""

import threading

import tensorflow as tf

from tfplugin.distribute import update_lock

tf1 = tf.compat.v1

_LIMIT = 30


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
