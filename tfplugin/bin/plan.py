# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""tfplugin-plan: predicts the speed of a training over a network.

    tfplugin-plan --model_mb=7.45 --step_ms=4.1 --link_mbit=1000 --workers=2

Predicts the steps per second of each worker, and the share of the time in which
it computes, by the equations of docs/speed.md. There is a line for each wrapper
and period. The last lines name the smallest period whose exchange is hidden
behind the steps. Measure --step_ms with one process on a worker's machine.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

from absl import app
from absl import flags

from tfplugin.bin import command_line
from tfplugin.ops import network_times

_COMMANDS = command_line.CommandLine((
    command_line.Group('The training', (
        flags.DEFINE_float('model_mb', None, 'The size of the trained '
                           'variables in MB (10^6 bytes). In float32 it is 4 '
                           'times the number of parameters in millions.'),
        flags.DEFINE_float('step_ms', None, 'The time of a step without any '
                           'exchange, in milliseconds.'),
        flags.DEFINE_integer('workers', None, 'The number of workers, the '
                             'chief included.'),
        flags.DEFINE_integer('ps', 1, 'Parameter servers, each on a link of '
                             'its own.'),
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


def main(argv: list[str]) -> None:
  """Prints the prediction for the training that the flags describe."""
  if len(argv) > 1:
    raise app.UsageError(f'Takes only flags. Received: {" ".join(argv[1:])}')
  values = _COMMANDS.values()
  missing = [name for name in _NEEDED if values[name] is None]
  if missing:
    raise app.UsageError(
        ', '.join(f'--{m}' for m in missing) +
        f' {"is" if len(missing) == 1 else "are"} required, e.g. '
        '--model_mb=7.45 --step_ms=4.1 --link_mbit=1000 --workers=2.')
  with command_line.errors_of_usage():
    _check(values)
    periods = [_period(text) for text in values['periods']]
  cluster = network_times.Cluster(
      model_bytes=values['model_mb'] * 1e6,
      step_secs=values['step_ms'] / 1e3,
      link_bytes=values['link_mbit'] * 1e6 / 8 * network_times.PAYLOAD,
      num_worker=values['workers'], num_ps=values['ps'],
      largest_part=1.0 if values['largest_mb'] is None else (
          values['largest_mb'] / values['model_mb']),
      latency_secs=values['latency_ms'] / 1e3,
      host_secs=values['host_ms'] / 1e3,
      call_secs=values['call_ms'] / 1e3)
  for line in lines(cluster, periods):
    print(line, file=sys.stdout)


def _check(values: dict) -> None:
  """Raises `ValueError` for a number out of range; names its flag."""
  for name, value in values.items():
    least_is_0 = flags.FLAGS[name].default == 0.0
    if isinstance(value, (int, float)) and not (
        math.isfinite(value) and (value > 0 or least_is_0 and value == 0)):
      raise ValueError(
          f'--{name} must be '
          f'{"at least 0" if least_is_0 else "positive"} and finite. '
          f'Received: {value}.')
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
  """Yields the table, a line for each wrapper and period.

  `periods` are values of elastic averaging's `communication_period`.
  """
  yield f'{"":58} {"steps/s":>9} {"computes":>9}'
  for name, period, secs in predictions(cluster, periods):
    rate = period / secs
    yield f'{name:58} {rate:9.4g} {rate * cluster.step_secs:9.1%}'
  for dtype in _DTYPES:
    period = network_times.hidden_period(cluster, dtype)
    yield (f'overlap{_with(dtype)}: the whole exchange is hidden from a period '
           f'of {period} steps on')
  yield 'without overlap: nothing is hidden'


def predictions(cluster: network_times.Cluster, periods: list[int],
                ) -> Iterator[tuple[str, int, float]]:
  """Yields names, numbers of steps, and the seconds that these take.

  `periods` are values of elastic averaging's `communication_period`.
  """
  yield ('asynchronous SGD; drop_stale, clip', 1,
         network_times.server_secs(cluster))
  yield 'SyncReplicas', 1, network_times.server_secs(cluster, meets=True)
  yield ('cross_shard, MultiWorkerMirrored, Horovod', 1,
         network_times.ring_secs(cluster))
  yield ('towers, in one process', 1, cluster.step_secs)
  for period in periods:
    for overlap in (False, True):
      for dtype in _DTYPES:
        name = 'elastic_average, period {}{}{}'.format(
            period, ', overlap' if overlap else '', _with(dtype))
        yield name, period, network_times.elastic_secs(
            cluster, period, overlap, dtype)


def _with(dtype):
  return f', {dtype}' if dtype else ''


def run() -> None:
  """Runs the console script."""
  _COMMANDS.run(main)


if __name__ == '__main__':
  run()
