# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Workers that join and leave a run of processes, through tfplugin-launch."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from tests.distributed.joins import joins_program
from tfplugin import events

pytestmark = [pytest.mark.distributed, pytest.mark.usefixtures('forking')]

PROGRAM = pathlib.Path(joins_program.__file__)
LIMIT_SECONDS = 120


class Run:
  """The launches of one run."""

  def __init__(self, form, directory, *flags, restart='never'):
    self.directory = directory
    self._restart = restart
    self._command = ['--', sys.executable, str(PROGRAM), form, str(directory),
                     '0.02']
    self._launches = {}
    self._start('main', '--workers=0:2', '--ps=2', *flags)
    self._address = self.wait(self._find_address)

  def join(self):
    """Starts a worker; returns the number of its launch."""
    number = len(self._launches)
    self._start(number, f'--join={self._address}')
    return number

  def output(self, name):
    return (self.directory / f'{name}.out').read_text()

  def records(self):
    """Returns what each process of the program has written, by task."""
    return {record['task']: {**record, 'steps': len(record['steps'])}
            for record in joins_program.read_records(self.directory)}

  def wait(self, look):
    """Returns the first true result of `look`."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not (found := look()):
      assert time.monotonic() < deadline, self.output('main')
      time.sleep(0.1)
    return found

  def wait_for_steps(self, task, count):
    return self.wait(lambda: (record := self.records().get(task)) and
                     record['steps'] >= count and record)

  def wait_for_event(self, name, worker):
    self.wait(lambda: (name, worker) in self.events())

  def events(self):
    return [(event.name, event.details['worker']) for event in self._events()
            if event.name in ('joined', 'left')]

  def _events(self):
    return events.read_run(str(self.directory / 'model')).events

  def pid(self, task):
    return [event.pid for event in self._events() if event.task == task][-1]

  def status(self, name):
    return self._launches[name].wait(LIMIT_SECONDS)

  def stop(self, name, number=signal.SIGTERM):
    self._launches[name].send_signal(number)

  def end(self):
    (self.directory / 'end').touch()
    return self.status('main')

  def close(self):
    for launch in self._launches.values():
      if launch.poll() is None:
        launch.terminate()
    for launch in self._launches.values():
      try:
        launch.wait(60)
      except subprocess.TimeoutExpired:
        launch.kill()

  def _start(self, name, *flags):
    root = str(PROGRAM.parents[3])
    path = os.pathsep.join([root, os.environ.get('PYTHONPATH', '')])
    with open(self.directory / f'{name}.out', 'w', encoding='utf-8') as out:
      self._launches[name] = subprocess.Popen(
          [sys.executable, '-m', 'tfplugin.bin.launch', *flags,
           f'--restart={self._restart}',
           f'--logs_dir={self.directory}/logs-{name}',
           f'--model_dir={self.directory}/model', *self._command],
          stdout=out, stderr=subprocess.STDOUT,
          env={**os.environ, 'PYTHONPATH': path})

  def _find_address(self):
    found = re.search(r'--join=(\S+)', self.output('main'))
    return found and found[1]


@pytest.fixture(name='start')
def _start(tmp_path):
  runs = []

  def start(form, *flags, **kwargs):
    runs.append(Run(form, tmp_path, *flags, **kwargs))
    return runs[-1]

  yield start
  for run in runs:
    run.close()


def _values(run):
  checkpoint = tf.train.load_checkpoint(str(run.directory / 'model'))
  return (int(checkpoint.get_tensor('global_step')),
          checkpoint.get_tensor('w'))


@pytest.mark.sampled(4)
@pytest.mark.timeout(400)
def test_workers_join_leave_and_die_and_no_step_is_lost(start):
  run = start('plain', '--evaluator')
  run.wait_for_steps('chief-0', 1)
  leaver = run.join()
  run.wait_for_steps('worker-0', 5)
  killed = run.join()
  victim = run.wait_for_steps('worker-1', 5)
  # The run takes two workers.
  refused = run.join()
  assert run.status(refused) == 1
  assert 'The run takes at most 2 workers' in run.output(refused)
  run.stop(leaver)
  assert run.status(leaver) == 130
  run.wait_for_event('left', 'worker:0')
  # There is a place again, and nobody gets the number of another one.
  run.join()
  run.wait_for_steps('worker-2', 5)
  os.kill(victim['pid'], signal.SIGKILL)
  assert run.status(killed) == 1
  # Its launcher reports it.
  run.wait_for_event('left', 'worker:1')
  assert run.end() == 0
  late = run.join()
  assert run.status(late) == 0
  assert 'The run has finished: there is nothing to' in run.output(late)
  # The last one may write its end after the table was made.
  for worker, end in ((0, ': SIGTERM'), (1, ': died'), (2, '')):
    assert re.search(rf'worker:{worker} +joined +0 .* joined \d\d:.*{end}',
                     run.output('main'))
  # On a busy machine a slow worker may leave and join once more.
  last = {worker: name for name, worker in run.events()}
  assert last == {'worker:0': 'left', 'worker:1': 'left', 'worker:2': 'joined'}
  steps = {task: record['steps'] for task, record in run.records().items()}
  assert sorted(steps) == ['chief-0', 'worker-0', 'worker-1', 'worker-2']
  global_step, w = _values(run)
  # The killed worker may have made one step that it did not note.
  assert global_step - sum(steps.values()) in (0, 1)
  np.testing.assert_array_equal(w, [global_step] * 2)


@pytest.mark.timeout(400)
@pytest.mark.sampled(8)
@pytest.mark.parametrize('form', ['clip', 'elastic', 'drop_strategy',
                                  'elastic_strategy'])
def test_a_worker_that_joined_goes_on_after_a_parameter_server_restarts(
    start, form):
  run = start(form, restart='ps=on_failure')
  run.wait_for_steps('chief-0', 1)
  joiner = run.join()
  run.wait_for_event('joined', 'worker:0')
  run.wait_for_steps('worker-0', 5)
  # The second one: it has no global step, but the other half of the variables.
  os.kill(run.pid('ps:1'), signal.SIGKILL)
  run.wait(lambda: 'ps:1 restarts' in run.output('main') or
           'it restarts in' in run.output('main'))
  before = {name: run.records()[name]['steps']
            for name in ('chief-0', 'worker-0')}
  for name, steps in before.items():
    run.wait_for_steps(name, steps + 50)
  assert run.end() == 0
  assert run.status(joiner) == 0
