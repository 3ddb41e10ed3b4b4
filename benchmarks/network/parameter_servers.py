# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Time of an asynchronous step with one parameter server in its own process.

usage: python -m benchmarks.network.parameter_servers [--contrib=PYTHON]

The same model under TensorFlow's strategy and ours: many small variables, and
a large one. All forms train with one server and one worker; repeats alternate
and the least time of each counts. PYTHON has TensorFlow 1.15.5: the same steps
there, bare and with contrib's drop stale. Writes
benchmarks/results/parameter_servers.json and a part of docs/exchange.md.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from typing import Optional

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import numpy as np
import tensorflow as tf

from benchmarks import clipping_benchmark
from benchmarks import machine
from benchmarks import page_part
from benchmarks import roles
from tests.helpers import strategy_worker
from tfplugin import distribute
from tfplugin import estimator
from tfplugin.bin import ports

tf1 = tf.compat.v1

_SGD = functools.partial(tf1.train.GradientDescentOptimizer, 0.01)
_ADAM = functools.partial(tf1.train.AdamOptimizer, 0.01)
_ADAGRAD = functools.partial(tf1.train.AdagradOptimizer, 0.2)
_ROWS = 128


def _squares(number, side):
  """Returns a loss of `number` square variables."""
  x = tf.constant(np.random.RandomState(0).randn(8, side), tf.float32)
  return tf.add_n([
      tf.reduce_mean(tf.square(x @ tf1.get_variable(f'v{i}', [side, side]) - 1))
      for i in range(number)])


def _recommender():
  """Returns the loss of the example, on one batch of it."""
  from examples import wide_and_deep  # Its import defines flags.
  features, labels = wide_and_deep.load_rows()
  features, labels = wide_and_deep.sparse_context(
      {name: tf.constant(values[:_ROWS]) for name, values in features.items()},
      tf.constant(labels[:_ROWS]))
  return tf1.losses.sigmoid_cross_entropy(
      labels, wide_and_deep.make_logits(features, 1))


# The loss, the optimizers, and the steps of a repeat.
_MODELS = {
    '220 variables': (functools.partial(_squares, 220, 16),
                      {'SGD': _SGD, 'Adam': _ADAM}, 40),
    '60 variables': (functools.partial(_squares, 60, 16),
                     {'SGD': _SGD, 'Adam': _ADAM}, 40),
    'one variable of 10M floats': (functools.partial(_squares, 1, 3163),
                                   {'SGD': _SGD, 'Adam': _ADAM}, 5),
    '`examples/wide_and_deep.py`': (_recommender, {'Adagrad': _ADAGRAD}, 40),
}


def _model_fn(make_loss, make_optimizer, features, labels, mode):
  del features, labels
  loss = make_loss()
  return tf.estimator.EstimatorSpec(
      mode, loss=loss, train_op=make_optimizer().minimize(
          loss, tf1.train.get_global_step()))


def _under(make_strategy, resolver, target, model_fn):
  """Returns a callable that makes a step under a strategy."""
  worker = strategy_worker.StrategyWorker(
      make_strategy(resolver), model_fn, target)
  return functools.partial(worker.session.run, worker.spec.train_op)


def _decorated(decorate, resolver, target, model_fn):
  """Returns the same with the Estimator's placement and a decorator."""
  place = tf1.train.replica_device_setter(
      cluster=resolver.cluster_spec(), worker_device='/job:worker/task:0')
  with tf.Graph().as_default() as graph, tf1.device(place):
    tf1.train.get_or_create_global_step()
    spec = decorate(model_fn)(None, None, 'train')
    session = tf1.Session(target, graph)
    session.run([tf1.global_variables_initializer(),
                 tf1.local_variables_initializer()])
    return session.make_callable(spec.train_op)


_FORMS = {
    'TensorFlow': functools.partial(
        _under, tf1.distribute.experimental.ParameterServerStrategy),
    'packed': functools.partial(
        _under, distribute.PackedParameterServerStrategy),
    'drop stale': functools.partial(_under, functools.partial(
        distribute.DropStaleGradientStrategy, staleness=10)),
    'drop stale, decorator': functools.partial(
        _decorated, estimator.drop_stale_gradients(staleness=10)),
    'plain, device setter': functools.partial(
        _decorated, lambda model_fn: model_fn),
}


_COLUMNS = {
    'TensorFlow': "TensorFlow's `ParameterServerStrategy`",
    'packed': '`PackedParameterServerStrategy`',
    'drop stale': '`DropStaleGradientStrategy`',
    'plain, device setter': 'no strategy',
    'drop stale, decorator': '`@drop_stale_gradients`',
    'contrib, bare': 'no strategy, TensorFlow 1.15.5',
    'contrib, drop stale': "contrib's drop stale, TensorFlow 1.15.5",
}


def measure(contrib: Optional[str]) -> list[dict[str, Any]]:
  """Returns milliseconds of a step by form, for each model and optimizer."""
  originals = _originals(contrib)
  server_port, worker_port = ports.pick_free(2)
  cluster = {'ps': [f'127.0.0.1:{server_port}'],
             'worker': [f'127.0.0.1:{worker_port}']}
  command = [sys.executable, '-m', 'benchmarks.network.parameter_servers',
             f'--server_of={json.dumps(cluster)}']
  rows = []
  with roles.running([command], machine.ROOT):
    server = tf.distribute.Server(cluster, job_name='worker', task_index=0)
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(cluster), task_type='worker', task_id=0)
    for model, (make_loss, optimizers, num_steps) in _MODELS.items():
      for name, make_optimizer in optimizers.items():
        model_fn = functools.partial(_model_fn, make_loss, make_optimizer)
        steps = [make(resolver, server.target, model_fn)
                 for make in _FORMS.values()]
        times = clipping_benchmark.least_times(steps, 8, num_steps)
        rows.append({'model': model, 'optimizer': name,
                     'ms': {**dict(zip(_FORMS, times)),
                            **originals.get((model, name), {})}})
  return rows


def _originals(contrib: Optional[str]) -> dict[tuple[str, str], Any]:
  """Returns the times on TensorFlow 1.15.5 by model and optimizer."""
  found = {} if contrib is None else json.loads(subprocess.run(
      [contrib, '-W', 'ignore', '-m', 'benchmarks.contrib_reference',
       'servers'], cwd=machine.ROOT, check=True, stdout=subprocess.PIPE,
      timeout=600).stdout)['servers']
  return {(model, name): {f'contrib, {form}': each
                          for form, each in times.items()}
          for model, by_name in found.items()
          for name, times in by_name.items()}


def lines(results: page_part.Results) -> Iterator[str]:
  """Yields the lines of the table of `results`, which `main` has written."""
  yield machine.sentence(results['about'])
  yield from page_part.table('model, optimizer', list(_COLUMNS.values()), (
      (f'{row["model"]}, {row["optimizer"]}', [
          _cell(row['ms'], form) for form in _COLUMNS])
      for row in results['rows']))


def _cell(times: dict[str, float], form: str) -> Optional[str]:
  """Returns a time, and how many times as fast as TensorFlow's it is."""
  if form not in times:
    return None
  cell = f'{times[form]:.2f} ms'
  if form == 'TensorFlow':
    return cell
  return f'{cell} ({times["TensorFlow"] / times[form]:.2f}x)'


PART = page_part.PagePart(
    'parameter_servers', '',
    'Not measured yet: `python -m benchmarks.network.parameter_servers`.',
    lines, machine.ROOT / 'docs/exchange.md')


def main(argv):
  """Measures and writes; with a cluster as argument, is its server."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--contrib', metavar='PYTHON')
  parser.add_argument('--server_of', type=json.loads, help=argparse.SUPPRESS)
  arguments = parser.parse_args(argv)
  if arguments.server_of:
    roles.requests()  # Ends with the benchmark.
    tf.distribute.Server(
        arguments.server_of, job_name='ps', task_index=0).join()
  about = machine.about()
  PART.write({'about': about, 'rows': measure(arguments.contrib)})
  os._exit(0)  # Servers of TensorFlow do not end.


if __name__ == '__main__':
  main(sys.argv[1:])
