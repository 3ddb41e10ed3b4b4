# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of who is started again."""
# BUILD data: //:sources

import pathlib
import re
import signal

import pytest

from tfplugin.bin.processes import restarts

_ROOT = pathlib.Path(__file__).absolute().parents[3]


# As Kubernetes' TFJob reads them; 3 and 255 are in none of its lists.
@pytest.mark.parametrize('status, is_permanent', [
    (1, True), (2, True), (126, True), (127, True), (128, True), (139, True),
    (3, True), (255, True), (-signal.SIGSEGV, True),
    (75, False), (130, False), (137, False), (138, False), (143, False),
    (-signal.SIGKILL, False), (-signal.SIGTERM, False),
    (-signal.SIGABRT, False), (-signal.SIGBUS, False)])
def test_what_a_status_says(status, is_permanent):
  assert restarts.is_permanent(status) is is_permanent


def test_the_page_has_every_status():
  text = (_ROOT / 'docs/launcher.md').read_text(encoding='utf-8')
  section = text.partition('## Exit statuses')[2].partition('\n## ')[0]
  rows = re.findall(r'^\| ([\d, ]+) \| (permanent|another try)', section, re.M)
  told = {int(status): word == 'permanent' for statuses, word in rows
          for status in statuses.split(',')}
  assert set(told) >= {1, 2, 75, 126, 127, 128, 130, 137, 138, 139, 143}
  assert told == {status: restarts.is_permanent(status) for status in told}


def test_policies_of_jobs():
  assert set(restarts.parse('always').values()) == {'always'}
  assert restarts.parse('worker=always, ps=on_failure') == {
      'chief': 'never', 'worker': 'always', 'ps': 'on_failure',
      'evaluator': 'never'}


@pytest.mark.parametrize('text', [
    'sometimes', 'worker', 'worker=', 'boss=never', 'worker=always,', ''])
def test_no_policy(text):
  with pytest.raises(ValueError, match='`restart` must be one of never.*e.g.'):
    restarts.parse(text)


def test_two_policies_for_a_job_are_refused():
  with pytest.raises(ValueError, match="one policy to ps.*'ps=always"):
    restarts.parse('ps=always,ps=never')


@pytest.mark.parametrize('settings, message', [
    ({'max_restarts': -1}, '`max_restarts` must be an integer'),
    ({'max_restarts': True}, '`max_restarts` must be an integer'),
    ({'delay_secs': -1.0}, '`restart_delay_secs` must be at least 0'),
    ({'delay_secs': float('inf')}, 'finite'),
])
def test_bad_settings(settings, message):
  with pytest.raises(ValueError, match=message):
    restarts.RestartPolicy(**settings)


def test_delays_double_up_to_a_minute_and_end():
  policy = restarts.RestartPolicy(restarts.parse('on_failure'), 8, 1.0)
  assert [policy.delay('worker', -9, count, count) for count in range(9)] == [
      0, 1, 2, 4, 8, 16, 32, 60, None]
  assert policy.longest_delay('worker') == 60
  # After a process that was well.
  assert policy.delay('worker', -9, 7, 0) == 0
  assert policy.delay('worker', -9, 7, 2) == 2
  assert policy.delay('worker', -9, 8, 0) is None


@pytest.mark.parametrize('policy, killed, error, done', [
    ('never', None, None, None), ('on_failure', 2.0, None, None),
    ('always', 2.0, 2.0, None)])
def test_what_each_policy_does(policy, killed, error, done):
  rules = restarts.RestartPolicy(restarts.parse(policy), delay_secs=2.0)
  assert [rules.delay('ps', status, 1, 1) for status in (-9, 1, 0)] == [
      killed, error, done]
