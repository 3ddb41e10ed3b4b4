# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of how a machine finds itself among others."""

import re
import socket

import pytest

from tfplugin.bin.launches import own_host


@pytest.fixture(autouse=True)
def names(monkeypatch):
  """This machine's names; no other has a known address."""
  monkeypatch.setattr(socket, 'gethostname', lambda: 'b')
  monkeypatch.setattr(socket, 'getfqdn', lambda: 'b.example.org')


@pytest.mark.parametrize('hosts, found', [
    (['a.invalid', 'b', 'c.invalid'], 'b'),
    (['a.invalid', 'b.example.org'], 'b.example.org'),
    (['a.invalid', 'b.other.invalid'], 'b.other.invalid'),
    (['a.invalid', '127.0.0.1'], '127.0.0.1'),
    # A name goes before an address.
    (['127.0.0.1', 'b'], 'b'),
])
def test_by_name_or_address(hosts, found):
  assert own_host.find(hosts) == found


def test_what_the_user_says_goes_before():
  assert own_host.find(['a', 'b'], 'a') == 'a'
  with pytest.raises(ValueError, match="`host` must be one.*'c'.*--hosts=a,b"):
    own_host.find(['a', 'b'], 'c')


@pytest.mark.parametrize('hosts, which', [
    (['x.invalid', 'y.invalid'], 'not'),
    (['127.0.0.1', '127.0.0.2'], 'several times')])
def test_none_or_several_is_refused(hosts, which):
  with pytest.raises(ValueError, match=re.escape(
      f'is {which} in --hosts={",".join(hosts)}. Say which it is: '
      f'--host={hosts[0]}')):
    own_host.find(hosts)
