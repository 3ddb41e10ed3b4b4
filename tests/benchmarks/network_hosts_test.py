# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The hosts come and go, and their programs measure whole periods."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest
import tensorflow as tf

from benchmarks import machine
from benchmarks import roles
from benchmarks import trained
from benchmarks.network import cells
from benchmarks.network import hosts
from benchmarks.network import models
from benchmarks.network import run

tf1 = tf.compat.v1


def _names():
  return [path.name for path in pathlib.Path('/var/run/netns').glob('*')]


@pytest.fixture(name='made')
def fixture_made():
  """Three hosts, where there may be any."""
  why = hosts.missing()
  if why is not None:
    pytest.skip(why)
  try:
    with hosts.Hosts() as made:
      yield made
  except RuntimeError as e:
    if 'ermi' not in str(e) and 'mount' not in str(e):
      raise
    pytest.skip(f'the kernel refuses namespaces: {e}')
  assert not [name for name in _names() if f'-{os.getpid()}-' in name]


def _output(made, host, *argv):
  return subprocess.run(made.command(host, argv), capture_output=True,
                        text=True, check=True).stdout


def test_links_have_the_rate_until_it_is_taken_away(made):
  for mbit, shown in ((100, '100Mbit'), (1000, '1Gbit')):
    made.shape(mbit)
    for host in range(3):
      # All together, a class for each of the two others, and small packets.
      classes = _output(made, host, 'tc', 'class', 'show', 'dev', 'e0')
      assert classes.count(f'ceil {shown}') == 4
      assert f'rate {shown}' in classes
  made.shape(None)
  assert 'htb' not in _output(made, 0, 'tc', 'qdisc', 'show', 'dev', 'e0')


def test_a_host_reaches_another_and_counts_its_bytes(made):
  made.shape(1000)
  program = ('import socket, sys\n'
             'from benchmarks.network import hosts\n'
             'server = socket.create_server((sys.argv[1], 2222))\n'
             'print("ready", flush=True)\n'
             'peer, _ = server.accept()\n'
             'received = 0\n'
             'while received < 10**6: received += len(peer.recv(2**16))\n'
             'print(hosts.counted_bytes()[1])')
  root = pathlib.Path(hosts.__file__).parents[2]
  log = pathlib.Path(os.devnull)
  with roles.running([made.command(1, [
      sys.executable, '-c', program, made.addresses[1]])], root, log) as [peer]:
    assert peer.stdout.readline() == 'ready\n'
    _output(made, 0, sys.executable, '-c',
            'import socket, sys\n'
            'socket.create_connection((sys.argv[1], 2222), 60).sendall('
            'bytes(10**6))', made.addresses[1])
    assert 1.0e6 < int(peer.stdout.readline()) < 1.2e6


def test_what_a_killed_one_left_is_removed(made):
  # The largest number of a process is below that.
  left = 'tfplugin-net-99999999-h0'
  subprocess.run(['ip', 'netns', 'add', left], check=True)
  hosts._remove_left_behind()
  assert left not in _names()
  assert made.command(0, [])[-1] in _names()


@pytest.mark.parametrize('user, system, words', [
    (1000, 'linux', 'need root'), (0, 'darwin', 'need Linux')])
def test_where_there_can_be_none_it_says_what_is_not_run(
    monkeypatch, capsys, user, system, words):
  monkeypatch.setattr(os, 'geteuid', lambda: user)
  monkeypatch.setattr(sys, 'platform', system)
  assert run.main([]) == 1
  said = capsys.readouterr().err
  assert words in said and 'Not run: all 36 cells on unshaped, 1000' in said


class _Testbed:

  def __init__(self, *args):
    del args

  def measure(self, links, is_quick):
    del is_quick
    return {link.name: {} for link in links}

  def add(self, results, names):
    for name in names:
      results['unshaped'][name] += ' and more'


@pytest.fixture(name='written')
def fixture_written(monkeypatch):
  """Runs without hosts; what the page would be of."""
  written = []
  monkeypatch.setattr(hosts, 'missing', lambda: None)
  monkeypatch.setattr(hosts, 'Hosts', contextlib.nullcontext)
  monkeypatch.setattr(run.testbed, 'Testbed', _Testbed)
  monkeypatch.setattr(run.page, 'write', written.append)
  monkeypatch.setattr(run.pictures, 'write', lambda results: None)
  monkeypatch.setattr(run.signal, 'signal', lambda *args: None)
  return written


def test_figures_outlive_a_picture_that_fails(monkeypatch, written):
  """They took two hours."""

  def fail(results):
    del results
    raise OSError('No space is left.')

  monkeypatch.setattr(run.pictures, 'write', fail)
  with pytest.raises(OSError, match='No space'):
    run.main([])
  assert [set(results['links']) for results in written] == [
      {link.name for link in cells.LINKS}]


def _results(**changes):
  return {'about': {**machine.about(), **changes}, 'is_quick': True,
          'links': {'unshaped': {cells.ASYNC: 'one', cells.SYNC: 'another'}}}


def test_rounds_are_added_to_the_results_that_there_are(monkeypatch, written):
  monkeypatch.setattr(run.page.PART, 'read', lambda: _results(commit='before'))
  assert run.main(['--add', cells.ASYNC]) == 0
  assert [results['links'] for results in written] == [
      {'unshaped': {cells.ASYNC: 'one and more', cells.SYNC: 'another'}}]
  assert written[0]['about']['commit'] == 'before' and written[0]['is_quick']
  assert [(each['about']['commit'], each['cells'])
          for each in written[0]['added']] == [
              (machine.about()['commit'], [cells.ASYNC])]


@pytest.mark.parametrize('results, words', [
    (None, 'there is no .*network.json to add'),
    (_results(cores=96), 'the same cores, which is 96 .* Received: '),
    (_results(tensorflow='1.15.5'), 'the same tensorflow, which is 1.15.5'),
    ({**_results(), 'links': {}}, f'has no {cells.ASYNC} to add')])
def test_rounds_of_something_else_are_not_added(
    monkeypatch, capsys, written, results, words):
  monkeypatch.setattr(run.page.PART, 'read', lambda: results)
  assert run.main(['--add', cells.ASYNC]) == 1
  said = capsys.readouterr().err
  assert re.search(f'Nothing was run, and nothing is written: .*{words}', said)
  assert not written


def test_rounds_that_are_compared_are_added_together(
    monkeypatch, capsys, written):
  """All three of one period on 1 Gbit/s: each is compared with another one."""
  three = [cells.elastic(10, exchange).name
           for exchange in ('plain', 'overlap, float16', 'overlap, int8')]
  results = _results()
  results['links']['unshaped'] = dict.fromkeys(three, 'one')
  monkeypatch.setattr(run.page.PART, 'read', lambda: results)
  for names in (three[:1], three[1:], three[:2], three[2:]):
    assert run.main(['--add', *names]) == 1
    assert 'of the same round: add both or neither' in capsys.readouterr().err
  assert not written
  assert run.main(['--add', *three]) == 0
  assert written[0]['links']['unshaped'] == dict.fromkeys(three, 'one and more')


@pytest.mark.parametrize('flags, words', [
    (['--try'], 'not allowed with'), (['--horovod', 'python'], 'leave out')])
def test_a_flag_that_an_addition_would_ignore_is_refused(capsys, flags, words):
  with pytest.raises(SystemExit):
    run.main([*flags, '--add', cells.ASYNC])
  assert words in capsys.readouterr().err


def test_an_unknown_flag_is_refused(capsys):
  with pytest.raises(SystemExit) as refused:
    run.main(['--fast'])
  assert refused.value.code == 2
  assert 'usage: python -m benchmarks.network.run' in capsys.readouterr().err


@pytest.fixture(name='clock')
def fixture_clock(monkeypatch):
  now = [0.0]
  monkeypatch.setattr(time, 'time', lambda: now[0])
  monkeypatch.setattr(time, 'sleep', lambda secs: _add(now, secs))
  return now


def _add(now, secs):
  now[0] += secs


@pytest.mark.parametrize('secs', [0.1, 3.0, 7.5])
def test_whole_periods_are_measured(clock, secs):
  """Three steps of 0.1 s, one of 1.1 s: 4 in 1.4 s, wherever a slot ends."""
  way = trained.Trained(lambda: _add(
      clock, 0.1 + (way.count % 4 == 3)), period=4)
  way.step()
  assert way.for_secs(1.0, secs) == pytest.approx(4 / 1.4)
  assert clock[0] >= 1.0 + secs
  assert way.communications == way.count / 4 >= 2


def test_the_time_before_and_after_does_not_count(clock):
  """Steps of 1 s until 6 s, of 0.25 s until 10 s, and of 1 s again."""
  way = trained.Trained(lambda: _add(
      clock, 0.25 if 6 <= clock[0] < 10 else 1.0), period=2)
  rate = way.for_secs(begin=1.0, secs=4.0, before=5.0, after=3.0)
  assert rate == pytest.approx(4.0)
  assert clock[0] >= 13.0 and not way.count % 2


def test_steps_without_communications_and_of_a_number(clock):
  way = trained.Trained(lambda: _add(clock, 0.25), period=0)
  assert way.for_secs(1.0, 3.0) == pytest.approx(4.0)
  assert way.communications == 0
  assert way.for_steps(9.0, 8) == pytest.approx(4.0)
  assert clock[0] == 11.0


@pytest.mark.parametrize('cell', [
    *cells.CELLS[:5], cells.elastic(10, 'plain'),
    cells.elastic(10, 'overlap, int8')], ids=lambda cell: cell.name)
def test_cells_are_built(cell):
  cluster = tf.train.ClusterSpec({'ps': ['h:1'], 'worker': ['h:2', 'h:3']})
  with tf.Graph().as_default():
    built = models.build(cell, cluster, 1)
    # The centre, or the model, is on the server; a copy is the worker's.
    copies = tf1.trainable_variables()
    assert sum(v.shape.num_elements() for v in copies) * 4 == cells.MODEL_BYTES
    is_local = bool(cell.exchange) or cell.name == cells.LOCAL
    assert {('worker' in v.device) for v in copies} == {is_local}
    assert len(built.hooks) == (bool(cell.exchange) or cell.name == cells.SYNC)
