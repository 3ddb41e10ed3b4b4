# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Time of an asynchronous step with parameter servers in own processes.

usage: python -m benchmarks.network.parameter_servers [--contrib=PYTHON]

The same model under TensorFlow's strategy and ours: many small variables, and
a large one. All forms train in the same worker, or in two at the same time;
repeats alternate and the least time of each counts. PYTHON has TensorFlow
1.15.5: the same steps there, bare and with contrib's drop stale. Writes
benchmarks/results/parameter_servers.json and a part of docs/exchange.md.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import numpy as np
import tensorflow as tf

from benchmarks import machine
from benchmarks import page_part
from benchmarks import roles
from tests.helpers import strategy_worker
from tfplugin import distribute
from tfplugin import estimator
from tfplugin.bin.processes import ports

tf1 = tf.compat.v1

_SGD = functools.partial(tf1.train.GradientDescentOptimizer, 0.01)
_ADAM = functools.partial(tf1.train.AdamOptimizer, 0.01)
_ADAGRAD = functools.partial(tf1.train.AdagradOptimizer, 0.2)
_ROWS = 128
_NUM_ROUNDS = 8
_LIMIT_SECS = 120.0


def _squares(number, side):
  """Returns a loss of `number` square variables."""
  x = tf.constant(np.random.RandomState(0).randn(8, side), tf.float32)
  return tf.add_n([
      tf.reduce_mean(tf.square(x @ tf1.get_variable(f'v{i}', [side, side]) - 1))
      for i in range(number)])


def _recommender(num_parts):
  """Returns the loss of the example, on one batch of it."""
  from examples import wide_and_deep  # Its import defines flags.
  features, labels = wide_and_deep.load_rows()
  features, labels = wide_and_deep.sparse_context(
      {name: tf.constant(values[:_ROWS]) for name, values in features.items()},
      tf.constant(labels[:_ROWS]))
  return tf1.losses.sigmoid_cross_entropy(
      labels, wide_and_deep.make_logits(features, num_parts))


@dataclasses.dataclass(frozen=True)
class _Model:
  """A loss, and how it is trained.

  Attributes:
    make_loss: Returns the loss.
    optimizers: Constructors by name.
    num_steps: The steps of a repeat.
    num_tasks: So many workers train at the same time, on so many servers.
  """

  make_loss: Callable[[], tf.Tensor]
  optimizers: dict[str, Callable[[], tf1.train.Optimizer]]
  num_steps: int
  num_tasks: int = 1


_DENSE = {'SGD': _SGD, 'Adam': _ADAM}
_MODELS = {
    '220 variables': _Model(functools.partial(_squares, 220, 16), _DENSE, 40),
    '60 variables': _Model(functools.partial(_squares, 60, 16), _DENSE, 40),
    'one variable of 10M floats': _Model(
        functools.partial(_squares, 1, 3163), _DENSE, 5),
    '`examples/wide_and_deep.py`': _Model(
        functools.partial(_recommender, 1), {'Adagrad': _ADAGRAD}, 40),
    '`examples/wide_and_deep.py`, 2 workers, 2 servers': _Model(
        functools.partial(_recommender, 2), {'Adagrad': _ADAGRAD}, 100, 2),
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
      make_strategy(resolver), model_fn, target, not resolver.task_id)
  return functools.partial(worker.session.run, worker.spec.train_op)


def _decorated(decorate, resolver, target, model_fn):
  """Returns the same with the Estimator's placement and a decorator."""
  place = tf1.train.replica_device_setter(
      cluster=resolver.cluster_spec(),
      worker_device=f'/job:worker/task:{resolver.task_id}')
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


def measure(contrib: str | None) -> list[dict[str, Any]]:
  """Returns milliseconds of a step by form, for each model and optimizer."""
  originals = _originals(contrib)
  rows = []
  for name, model in _MODELS.items():
    for optimizer in model.optimizers:
      with _cluster(model.num_tasks) as workers:
        times = _times(workers, (name, optimizer), model.num_steps)
      rows.append({'model': name, 'optimizer': optimizer,
                   'ms': {**times, **originals.get((name, optimizer), {})}})
  return rows


@contextlib.contextmanager
def _cluster(num_tasks: int) -> Iterator[list[roles.Role]]:
  """Runs so many workers and servers, and yields the workers."""
  free = ports.pick_free(2 * num_tasks)
  cluster = {'worker': [f'127.0.0.1:{port}' for port in free[:num_tasks]],
             'ps': [f'127.0.0.1:{port}' for port in free[num_tasks:]]}
  commands = [[sys.executable, '-m', 'benchmarks.network.parameter_servers',
               f'--task={json.dumps([cluster, job, index])}']
              for job in cluster for index in range(num_tasks)]
  with roles.running(commands, machine.ROOT) as processes:
    yield [roles.Role(process, f'worker:{index}')
           for index, process in enumerate(processes[:num_tasks])]


def _times(workers: list[roles.Role], model: tuple[str, str],
           num_steps: int) -> dict[str, float]:
  """Returns the least time of each form, the mean of the workers."""
  for form in _FORMS:
    for worker in workers:  # One after the other: the first one initialises.
      worker.ask('build', form, *model)
      worker.answer(_LIMIT_SECS)
  best = dict.fromkeys(_FORMS, float('inf'))
  for _ in range(_NUM_ROUNDS):
    for form in _FORMS:
      for worker in workers:
        worker.ask('run', form, num_steps)
      answers = [worker.answer(_LIMIT_SECS) for worker in workers]
      best[form] = min(best[form], statistics.fmean(answers))
  return best


def _work(cluster: dict[str, list[str]], index: int) -> None:
  """Builds and makes steps as it is asked to."""
  requests = roles.requests()
  server = tf.distribute.Server(cluster, job_name='worker', task_index=index)
  resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
      tf.train.ClusterSpec(cluster), task_type='worker', task_id=index)
  steps = {}
  while True:
    request, form, *arguments = requests.get()
    start = time.perf_counter()
    if request == 'build':
      name, optimizer = arguments
      model = _MODELS[name]
      steps[form] = _FORMS[form](resolver, server.target, functools.partial(
          _model_fn, model.make_loss, model.optimizers[optimizer]))
      steps[form]()
      count = 1
    else:
      count, = arguments
      for _ in range(count):
        steps[form]()
    roles.say((time.perf_counter() - start) / count * 1e3)


def _originals(contrib: str | None) -> dict[tuple[str, str], Any]:
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


def _cell(times: dict[str, float], form: str) -> str | None:
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
  """Measures and writes; with a task as argument, is that."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--contrib', metavar='PYTHON')
  parser.add_argument('--task', type=json.loads, help=argparse.SUPPRESS)
  arguments = parser.parse_args(argv)
  if arguments.task:
    cluster, job, index = arguments.task
    if job == 'worker':
      _work(cluster, index)
    roles.requests()  # Ends with the benchmark.
    tf.distribute.Server(cluster, job_name=job, task_index=index).join()
  about = machine.about()
  PART.write({'about': about, 'rows': measure(arguments.contrib)})


if __name__ == '__main__':
  main(sys.argv[1:])
