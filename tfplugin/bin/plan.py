# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""tfplugin-plan: predicts the speed of a training over a network.

    tfplugin-plan --model_mb=7.45 --step_ms=4.1 --link_mbit=1000 --workers=2
    tfplugin-plan RUN_DIR --link_mbit=1000

The second command takes the other numbers from the checkpoint and the events of
a run; a flag replaces its number.

Predicts the steps per second of each worker, and the share of the time in which
it computes. The page Speed of the documentation has the equations. There is a
line for each wrapper and period, and the steps per second in relation to
asynchronous SGD. The last line recommends a wrapper. Measure --step_ms with one
process on a worker's machine: the time of a run in a cluster includes the
exchanges.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator

import tensorflow as tf
from absl import app
from absl import flags

from tfplugin.bin import command_line
from tfplugin.bin import network_times
from tfplugin.report.reading import run_data

tf1 = tf.compat.v1

_COMMANDS = command_line.CommandLine((
    command_line.Group('The training', (
        flags.DEFINE_float('model_mb', None, 'The size of the trained '
                           'variables in MB (10^6 bytes). In float32 it is 4 '
                           'times the number of parameters in millions.'),
        flags.DEFINE_float('step_ms', None, 'The time of a step without any '
                           'exchange, in milliseconds.'),
        flags.DEFINE_integer('workers', None, 'Processes that train, the chief '
                             'included: one more than the --workers of '
                             'tfplugin-launch and tfplugin-train.'),
        flags.DEFINE_integer('ps', None, 'Parameter servers, each on a link of '
                             'its own. Default: 1.'),
        flags.DEFINE_list('periods', '1,10,32,100', 'Communication periods of '
                          'elastic averaging.'),
    ), is_common=True),
    command_line.Group('The network', (
        flags.DEFINE_float('link_mbit', None, 'The rate of each link in each '
                           'direction, in Mbit/s (10^6 bits a second).'),
        flags.DEFINE_float('latency_ms', 0.0, 'The latency of one way, in '
                           'milliseconds.'),
    ), is_common=True),
    command_line.Group('Further measurements', (
        flags.DEFINE_float('largest_mb', None, 'The largest variable, in 10^6 '
                           'bytes; other variables are sent while it is '
                           'received. Default: as large as the model.'),
        flags.DEFINE_float('host_ms', 0.0, 'Processor time that an exchange '
                           'takes, in milliseconds.'),
        flags.DEFINE_float('call_ms', 0.0, 'Time that each step of elastic '
                           'averaging without overlap takes to call the '
                           'servers, in milliseconds.'),
    )),
))
_NEEDED = ('model_mb', 'step_ms', 'link_mbit', 'workers')
_DTYPES = (None, 'float16', 'int8')
_NAME_WIDTH = 46
_RING = 'cross_shard'
# The part of a step that computes where the network is no matter.
_ENOUGH = 0.9
# Exchanges that are further apart are recommended only where no others hide.
_LONGEST = 32


def main(argv: list[str]) -> None:
  """Prints the prediction for the training that flags or a run describe."""
  if len(argv) > 2:
    raise app.UsageError(
        f'Takes one RUN_DIR at most. Received: {" ".join(argv[1:])}')
  values = _COMMANDS.values()
  with command_line.errors_of_usage():
    if len(argv) > 1:
      values = _with_run(argv[1], values)
    _check(values)
    periods = [_period(text) for text in values['periods']]
  cluster = network_times.Cluster(
      model_bytes=values['model_mb'] * 1e6,
      step_secs=values['step_ms'] / 1e3,
      link_bytes=values['link_mbit'] * 1e6 / 8 * network_times.PAYLOAD,
      num_worker=values['workers'],
      num_ps=1 if values['ps'] is None else values['ps'],
      largest_part=1.0 if values['largest_mb'] is None else (
          values['largest_mb'] / values['model_mb']),
      latency_secs=values['latency_ms'] / 1e3,
      host_secs=values['host_ms'] / 1e3,
      call_secs=values['call_ms'] / 1e3)
  for line in lines(cluster, periods):
    print(line)


def _with_run(run_dir: str, values: dict) -> dict:
  """Returns `values` with the numbers of a run in place of missing ones."""
  of_run = read_size(run_dir)
  if values['model_mb'] is not None:
    del of_run['largest_mb']
  missing = {name: value for name, value in of_run.items()
             if values[name] is None}
  shown = ' '.join(f'--{name}={value:.4g}' for name, value in missing.items())
  print(f'From {run_dir}: {shown}')
  return {**values, **missing}


def _check(values: dict) -> None:
  """Raises `ValueError` for a number that is missing or out of range."""
  missing = [f'--{name}' for name in _NEEDED if values[name] is None]
  if missing:
    raise ValueError(
        f'{", ".join(missing)} {"is" if len(missing) == 1 else "are"} '
        'required, e.g. --model_mb=7.45 --step_ms=4.1 --link_mbit=1000 '
        '--workers=2 (a chief and a worker).')
  for name, value in values.items():
    if isinstance(value, (int, float)):
      command_line.check_finite(
          name, value, is_positive=flags.FLAGS[name].default != 0.0)
  largest = values['largest_mb']
  if largest is not None and largest > values['model_mb']:
    raise ValueError(
        '--largest_mb must be at most --model_mb, of which it is a part. '
        f'Received: {largest} of {values["model_mb"]}.')


def _period(text: str) -> int:
  """Returns the period in a flag's text; raises `ValueError` without one."""
  try:
    period = int(text)
  except ValueError:
    period = 0
  if period < 1:
    raise ValueError('--periods must be integers of at least 1. Received: '
                     f'{text!r}. Pass e.g. 1,10,100.')
  return period


def lines(cluster: network_times.Cluster, periods: list[int]) -> Iterator[str]:
  """Yields the table, a line for each wrapper and period, by exchange."""
  yield (f'{"":{_NAME_WIDTH}} {"steps/s":>9} {"computes":>9} '
         f'{"x async. SGD":>13}')
  slowest = network_times.server_secs(cluster)
  for group, rows in predictions(cluster, periods).items():
    yield group
    for name, period, secs in rows:
      rate = period / secs
      yield (f'  {name:{_NAME_WIDTH - 2}} {rate:9.4g} '
             f'{rate * cluster.step_secs:9.1%} {rate * slowest:13.3g}')
  hidden = {dtype: network_times.hidden_period(cluster, dtype)
            for dtype in _DTYPES}
  yield ('Asynchronous SGD is predicted with dense gradients: of an embedding '
         'table it sends only the rows of a batch.')
  yield ('With overlap=True the exchange is hidden behind the steps from this '
         'period on: ' + ', '.join(
             f'{period} ({dtype or "float32"})'
             for dtype, period in hidden.items()) + '.')
  yield f'Recommended: {recommendation(cluster, hidden)}'


def recommendation(cluster: network_times.Cluster,
                   hidden: dict[str | None, int]) -> str:
  """Returns the wrapper to begin with, and why.

  `hidden` has the smallest period that overlap hides, by `exchange_dtype`.
  """
  for name, secs in (
      ('asynchronous SGD or any wrapper', network_times.server_secs(cluster)),
      (_RING, network_times.ring_secs(cluster))):
    if secs * _ENOUGH <= cluster.step_secs and (
        cluster.num_worker > 1 or name != _RING):
      return (f'{name}: the network takes {1 - cluster.step_secs / secs:.0%} '
              'of the time.')
  dtype, period = next(
      ((dtype, period) for dtype, period in hidden.items()
       if period <= _LONGEST), (_DTYPES[-1], hidden[_DTYPES[-1]]))
  secs = network_times.elastic_secs(cluster, period, True, dtype) / period
  with_dtype = f', exchange_dtype={dtype!r}' if dtype else ''
  return (f'elastic_average(communication_period={period}, overlap=True'
          f'{with_dtype}): {1 / secs:.4g} steps/s, '
          f'{network_times.server_secs(cluster) / secs:.3g} times asynchronous '
          'SGD.')


def predictions(cluster: network_times.Cluster, periods: list[int],
                ) -> dict[str, list[tuple[str, int, float]]]:
  """Returns names, numbers of steps and their seconds, by group."""
  groups = {
      'one process, no exchange': [('towers', 1, cluster.step_secs)],
      'parameter servers, an exchange in each step': [
          ('asynchronous SGD; drop_stale, clip', 1,
           network_times.server_secs(cluster)),
          ('SyncReplicas', 1,
           network_times.server_secs(cluster, synchronous=True))],
      'all-reduce in each step': [
          ('cross_shard, MultiWorkerMirrored, Horovod', 1,
           network_times.ring_secs(cluster))]}
  for dtype in _DTYPES:
    groups[f'elastic_average, exchange in {dtype or "float32"}'] = [
        (f'period {period}{", overlap" if overlap else ""}', period,
         network_times.elastic_secs(cluster, period, overlap, dtype))
        for period in periods for overlap in (False, True)]
  return groups


def read_size(run_dir: str | os.PathLike) -> dict[str, float]:
  """Returns the flags that a run's newest session and checkpoint tell.

  The step is the median of the workers', exchanges included. A worker that has
  left before the end does not count.
  """
  run = run_data.read(run_dir)
  newest = max(event.session for event in run.reading.events)
  events = [e for e in run.reading.events if e.session == newest]
  rates = [event.details['steps_per_sec'] for event in events
           if event.name == 'training' and
           event.details.get('steps_per_sec', 0) > 0]
  if not rates:
    raise ValueError(
        f'RUN_DIR: no task in {run_dir} has reported steps per second in the '
        'newest session. Train for half a minute, or give --step_ms and '
        '--model_mb.')
  sizes = _sizes(run_dir)
  last = {event.task: event for event in events}
  # The chief tells of each worker that joins or leaves.
  reported = {event.details['worker']: event.name for event in events
              if event.name in ('joined', 'left')}
  workers = [task for task in run.training_tasks if task in last and (
      reported.get(task) != 'left' or last[task].name == 'ended')]
  jobs = [task.partition(':')[0] for task in last]
  return {'model_mb': sum(sizes) / 1e6, 'largest_mb': max(sizes) / 1e6,
          'step_ms': 1e3 / statistics.median(rates),
          'workers': len(workers), 'ps': max(1, jobs.count('ps'))}


def _sizes(run_dir) -> list[int]:
  """Returns the bytes of each trained variable of one worker."""
  newest = tf.train.latest_checkpoint(os.fspath(run_dir))
  if newest is None or not tf.io.gfile.exists(f'{newest}.meta'):
    raise ValueError(
        f'RUN_DIR: {run_dir} has no checkpoint with a graph '
        '(model.ckpt-N.meta). Train until one is saved, or give --model_mb.')
  with tf.Graph().as_default():
    tf1.train.import_meta_graph(f'{newest}.meta', clear_devices=True)
    sizes = [variable.shape.num_elements() * variable.dtype.size
             for variable in tf1.trainable_variables()]
  if not sizes:
    raise ValueError(f'RUN_DIR: the graph of {newest} has no trained variable. '
                     'Give --model_mb.')
  return sizes


def run() -> None:
  """Runs the console script."""
  _COMMANDS.run(main)


if __name__ == '__main__':
  run()
