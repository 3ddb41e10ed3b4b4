# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Traces the files that each wrapper goes through to build one training step.

usage: python -m build_defs.gradient_walks [--calls] [wrapper ...]

A decorated model_fn is built once in a graph. The walk has the files of the
package whose code runs, and its calls from one file to another. A pair calls
each other in both directions: its reader goes back and forth. With `--calls`
every call is listed, with its number.
"""

from __future__ import annotations

import argparse
import collections
import sys
import threading
from typing import Callable

import tensorflow as tf

import tfplugin

tf1 = tf.compat.v1

_USER = 'model_fn'
_ROOT = tfplugin.__file__[:-len('__init__.py')]


def model_fn(features, labels, mode):
  """Builds a model of one dense and one embedded variable."""
  table = tf1.get_variable('table', [8, 4])
  kernel = tf1.get_variable('kernel', [4, 1])
  rows = tf.nn.embedding_lookup(table, features)
  loss = tf1.losses.mean_squared_error(labels, tf.matmul(rows, kernel))
  optimizer = tf1.train.MomentumOptimizer(0.1, 0.9)
  train_op = optimizer.minimize(loss, tf1.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


WALKS = {
    'clip': lambda: tfplugin.estimator.clip_variables(
        model_fn, rules={'table': 1, 'kernel': 0}, max_norm=1.0),
    'drop_stale': lambda: tfplugin.estimator.drop_stale_gradients(
        model_fn, staleness=2),
    'elastic_average': lambda: tfplugin.estimator.elastic_average(
        model_fn, communication_period=5, count_steps='local'),
    'towers': lambda: tfplugin.estimator.replicate_model_fn(
        model_fn, devices=['/cpu:0', '/cpu:1']),
    'cross_shard': lambda: tfplugin.estimator.cross_shard(
        model_fn, devices=['/cpu:0', '/cpu:1']),
}


class Walk:
  """The calls from one file of the package to another, with their numbers.

  The user's model_fn is a caller, too, also through TensorFlow.
  """

  def __init__(self):
    """Starts without calls."""
    self.calls = collections.Counter()

  def follow(self, call: Callable[[], object]) -> None:
    """Counts the calls that `call` makes, in all its threads."""
    threading.setprofile(self._note)
    sys.setprofile(self._note)
    try:
      call()
    finally:
      sys.setprofile(None)
      threading.setprofile(None)

  def _note(self, frame, event, unused_argument):
    if event != 'call' or not _is_ours(frame):
      return
    caller = frame.f_back
    while caller is not None and not _is_ours(caller):
      if caller.f_code is model_fn.__code__:
        break
      caller = caller.f_back
    if caller is not None:
      self.calls[_file(caller), _file(frame)] += 1

  @property
  def files(self) -> list[str]:
    """The files, in the order of their first call."""
    return list(dict.fromkeys(
        file for call in self.calls for file in call if file != _USER))

  @property
  def pairs(self) -> list[tuple[str, str]]:
    """The files that call each other in both directions."""
    return sorted((a, b) for a, b in self.calls
                  if a < b and (b, a) in self.calls)


def _is_ours(frame) -> bool:
  # `compat` stands for modules of TensorFlow, on some of its releases.
  file = frame.f_code.co_filename
  return file.startswith(_ROOT) and not file.startswith(f'{_ROOT}compat/')


def _file(frame) -> str:
  if frame.f_code is model_fn.__code__:
    return _USER
  file = frame.f_code.co_filename[len(_ROOT):]
  # The room of private TensorFlow is one place, whatever its files.
  return file.split('/')[0] if file.startswith('_tf_internals') else file


def walk_of(wrapper: str) -> Walk:
  """Returns the walk of one wrapper."""
  decorated = WALKS[wrapper]()
  walk = Walk()
  with tf.Graph().as_default():
    tf1.train.create_global_step()
    features = tf1.placeholder(tf.int64, [4])
    labels = tf1.placeholder(tf.float32, [4, 1])
    walk.follow(lambda: decorated(
        features, labels, tf.estimator.ModeKeys.TRAIN))
  return walk


def main() -> None:
  """Prints the walks."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('wrappers', nargs='*', metavar='wrapper',
                      help=f'of {", ".join(WALKS)}; by default all')
  parser.add_argument('--calls', action='store_true', help='list every call')
  arguments = parser.parse_args()
  tf1.logging.set_verbosity('ERROR')
  for wrapper in arguments.wrappers or WALKS:
    walk = walk_of(wrapper)
    print(f'{wrapper}: {len(walk.files)} files, {len(walk.pairs)} pairs, '
          f'{sum(walk.calls.values())} calls')
    print('  files:', *walk.files)
    for a, b in walk.pairs:
      print(f'  pair: {a} {walk.calls[a, b]} {b} {walk.calls[b, a]}')
    if arguments.calls:
      for (a, b), number in walk.calls.most_common():
        print(f'  {number:5} {a} -> {b}')


if __name__ == '__main__':
  main()
