# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The number of a run, and its mark on a parameter server."""

import shutil

import pytest
import tensorflow as tf

from tfplugin.checkpoints import run_mark
from tfplugin.testing import clusters

tf1 = tf.compat.v1


def test_a_directory_keeps_its_number_also_under_another_path(tmp_path):
  one, other = str(tmp_path / 'one'), str(tmp_path / 'other')
  number = run_mark.number_of_run(one)
  assert 0 < number < run_mark.UNFINISHED
  assert run_mark.number_of_run(one) == number
  assert run_mark.number_of_run(other) != number
  shutil.move(one, str(tmp_path / 'moved'))
  assert run_mark.number_of_run(str(tmp_path / 'moved')) == number
  assert run_mark.number_of_run(one) != number


def test_without_a_directory_all_runs_have_one_number():
  assert run_mark.number_of_run(None) == run_mark.number_of_run('')


@pytest.mark.parametrize('text', ['', 'no number', '-7'])
def test_a_file_without_a_number_is_written_again(tmp_path, text):
  path = tmp_path / run_mark.FILE_NAME
  path.write_text(text)
  number = run_mark.number_of_run(str(tmp_path))
  assert path.read_text() == f'{number}\n'


def test_the_mark_is_on_the_first_server_and_in_no_checkpoint(behavior):
  cluster = clusters.in_process_cluster(num_workers=2, num_ps=2)

  def marks(worker, write=None):
    """Returns the mark before and after it is written."""
    with tf.Graph().as_default():
      # The tasks make their variables in different orders.
      variables = []
      for server in (0, 1) if worker else (1, 0):
        with tf1.device(f'/job:ps/task:{server}'):
          variables.append(tf1.get_variable(f'v{server}', [2]))
      mark = run_mark.RunMark(variables)
      assert '/job:ps/task:0/' in f'{mark.number.device}/'
      assert tf1.global_variables() == variables
      with tf1.Session(cluster.target('worker', worker)) as session:
        before = session.run(mark.number)
        if write is not None:
          mark.write(session, write)
        return before, session.run(mark.number)

  assert marks(0, 7) == (0, 7)
  assert marks(1) == (7, 7)
  assert marks(1, -7) == (7, -7)
  marks(0, 0)


def test_a_task_whose_hooks_make_variables_finds_the_mark_of_the_others(
    behavior):
  def device(*servers):
    with tf.Graph().as_default():
      with tf1.device('/job:ps/task:1'):
        variables = [tf1.train.create_global_step()]
      for server in servers:
        with tf1.device(f'/job:ps/task:{server}'):
          variables.append(tf1.get_variable(f'hook{server}', initializer=1.0))
      return run_mark.RunMark(variables).number.device

  assert device(0, 2) == device(2) == device()
  assert '/job:ps/task:1/' in f'{device()}/'


def test_a_graph_without_a_variable_on_a_server_has_no_mark(behavior):
  with tf.Graph().as_default():
    tf1.get_variable('v', [2])
    assert run_mark.of_graph([]) is None
