# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What smaller and overlapping exchanges do to the loss: five seeds of each.

usage: python -m benchmarks.losses

Two workers and a parameter server, over gRPC, train a classifier of digits with
elastic averaging, period 10; each worker makes its steps as fast as it can. The
loss is the centre's on rows that were held out, computed by numpy. Writes
benchmarks/results/losses.json and a part of docs/speed.md.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import numpy as np
import tensorflow as tf

import tfplugin
from benchmarks import machine
from benchmarks import page_part
from benchmarks.network import cells
from tfplugin.bin import datasets
from tfplugin.testing import clusters

tf1 = tf.compat.v1

SEEDS = range(5)
_PERIOD, _STEPS, _ROWS, _RATE = 10, 600, 32, 0.1
_LAYERS = (64, 128, 64, 10)
_WORKERS = (0, 1)
_LIMIT_SECS = 300.0
_CENTRE = 'global_center_variable/'


def train(exchange: Mapping[str, object], seed: int,
          cluster: clusters.InProcessCluster, digits: datasets.Split) -> float:
  """Trains; returns the loss of the centre.

  Args:
    exchange: What the optimizer is given, of `cells.EXCHANGES`.
    seed: Of the first values and of the order of the rows.
    cluster: Two workers and a server.
    digits: The rows.
  """
  container = f'{len(exchange)}.{"".join(map(str, exchange.values()))}.{seed}'
  errors: list[BaseException] = []

  # A worker that comes before the variables looks for them each 30 s.
  are_made = threading.Event()

  def worker(task):
    try:
      if task:
        are_made.wait(_LIMIT_SECS)
      _train_worker(exchange, seed, task, container, cluster, digits.train,
                    are_made)
    except BaseException as error:
      errors.append(error)
      raise

  threads = [threading.Thread(target=worker, args=(task,), daemon=True)
             for task in _WORKERS]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join(_LIMIT_SECS)
  if errors or any(thread.is_alive() for thread in threads):
    raise RuntimeError(f'A worker did not end: {errors}')
  return _loss_of(_centre(cluster, container), digits.test)


def _train_worker(exchange, seed, task, container, cluster, examples,
                  are_made):
  device = f'/job:worker/task:{task}'
  with tf.Graph().as_default() as graph, graph.container(container):
    tf1.set_random_seed(seed)
    with tf1.device(cluster.device_setter(task)):
      step = tf1.train.get_or_create_global_step()
      rows = tf1.data.make_one_shot_iterator(
          tf.data.Dataset.from_tensor_slices(tuple(examples)).shuffle(
              len(examples.labels), seed=1000 * seed + task).repeat().batch(
                  _ROWS, drop_remainder=True)).get_next()
      getter = tfplugin.ElasticAverageCustomGetter(device)
      with tf1.variable_scope('', custom_getter=getter):
        loss = _loss(*rows)
      optimizer = tfplugin.ElasticAverageOptimizer(
          tf1.train.GradientDescentOptimizer(_RATE), len(_WORKERS), getter,
          communication_period=_PERIOD, rho=0.0, **exchange)
      train_op = optimizer.minimize(loss, step)
    hook = optimizer.make_session_run_hook(task == 0, task)
    with tf1.train.MonitoredTrainingSession(
        cluster.target('worker', task), is_chief=task == 0, hooks=[hook],
        config=tf1.ConfigProto(device_filters=['/job:ps', device]),
    ) as session:
      are_made.set()
      for _ in range(_STEPS):
        session.run(train_op)


def _layer_names():
  return [(f'kernel_{index}', f'bias_{index}')
          for index in range(len(_LAYERS) - 1)]


def _loss(inputs, labels):
  hidden = inputs
  for (kernel, bias), m, n in zip(_layer_names(), _LAYERS, _LAYERS[1:]):
    hidden = tf.matmul(hidden, tf1.get_variable(kernel, [m, n])) + (
        tf1.get_variable(bias, [n], initializer=tf1.zeros_initializer()))
    if n != _LAYERS[-1]:
      hidden = tf.nn.relu(hidden)
  return tf1.losses.sparse_softmax_cross_entropy(labels, hidden)


def _centre(cluster, container) -> dict[str, np.ndarray]:
  """Reads the variables that a server has."""
  with tf.Graph().as_default() as graph, graph.container(container):
    with tf1.device('/job:ps/task:0'):
      variables = {
          name: tf1.get_variable(f'{_CENTRE}{name}', shape)
          for (kernel, bias), m, n in zip(_layer_names(), _LAYERS, _LAYERS[1:])
          for name, shape in ((kernel, [m, n]), (bias, [n]))}
    with cluster.session(0, graph) as session:
      return session.run(variables)


def _loss_of(values: Mapping[str, np.ndarray],
             examples: datasets.Examples) -> float:
  """The mean cross entropy."""
  hidden = examples.inputs
  for kernel, bias in _layer_names():
    hidden = hidden @ values[kernel] + values[bias]
    if kernel != _layer_names()[-1][0]:
      hidden = np.maximum(hidden, 0)
  hidden = hidden.astype(np.float64)
  hidden -= hidden.max(axis=1, keepdims=True)
  right = hidden[np.arange(len(hidden)), examples.labels]
  return float(np.mean(np.log(np.exp(hidden).sum(axis=1)) - right))


def is_inside(every: Sequence[float], plain: Sequence[float]) -> bool:
  """Returns whether the median is one that the plain exchange has, too.

  Args:
    every: The losses of the seeds.
    plain: Those of the plain exchange; nothing below is worse.
  """
  return statistics.median(every) <= max(plain)


def _lines(results: page_part.Results) -> Iterator[str]:
  losses = results['losses']
  yield (f'The centre\'s cross entropy on held-out digits after {_STEPS} steps '
         f'of each of two workers, elastic averaging with period {_PERIOD}: '
         f'the median of {len(SEEDS)} seeds, with the least and the largest. '
         '"Inside": the median is no worse than the worst seed of the plain '
         'exchange. `python -m benchmarks.losses` on '
         f'{machine.sentence(results["about"])}')
  yield from page_part.table('exchange', ['loss', 'inside'], [
      (name, [page_part.with_spread(every),
              'yes' if is_inside(every, losses['plain']) else 'no'])
      for name, every in losses.items()])


PART = page_part.PagePart(
    'losses', 'The loss with a smaller exchange',
    'Not measured yet: `python -m benchmarks.losses` writes this part.', _lines)


def main() -> None:
  """Measures every exchange, seed by seed, and writes the file and the part."""
  about = machine.about()
  cluster = clusters.in_process_cluster(len(_WORKERS), 1)
  digits = datasets.load_digits()
  losses: dict[str, list[float]] = {name: [] for name in cells.EXCHANGES}
  for seed in SEEDS:
    for name, exchange in cells.EXCHANGES.items():
      losses[name].append(train(exchange, seed, cluster, digits))
      print(f'seed {seed}: {name}: {losses[name][-1]:.4f}', flush=True)
  PART.write({'about': about, 'losses': losses})


if __name__ == '__main__':
  main()
  sys.stdout.flush()
  os._exit(0)  # Servers in this process have no end.
