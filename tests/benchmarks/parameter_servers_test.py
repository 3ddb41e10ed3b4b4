# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table of packed parameter servers is that of the recorded results."""
# BUILD data: //:sources
# BUILD data: //benchmarks:results

from benchmarks.network import parameter_servers

_BY_HAND = {
    'about': {'machine': 'm', 'cores': 2, 'kernel': 'k', 'tensorflow': '2',
              'python': '3', 'commit': 'c', 'load_before': 0.0},
    'rows': [{'model': 'a', 'optimizer': 'SGD', 'ms': {
        'TensorFlow': 12.0, 'packed': 3.0, 'drop stale': 4.0,
        'drop stale, decorator': 6.0, 'plain, device setter': 24.0,
        'contrib, drop stale': 8.0}}]}


def test_figures_by_hand():
  assert list(parameter_servers.lines(_BY_HAND))[-1] == (
      '| a, SGD | 12.00 ms | 3.00 ms (4.00x) | 4.00 ms (3.00x) '
      '| 24.00 ms (0.50x) | 6.00 ms (2.00x) | - '
      '| 8.00 ms (1.50x) |')


def test_the_table_of_the_page_is_that_of_the_results():
  part = parameter_servers.PART
  text = part.page.read_text(encoding='utf-8')
  assert part.written(text, part.read()) == text
  assert len(part.read()['rows']) == 8
