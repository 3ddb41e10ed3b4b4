# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures and set-up that every test shares."""

import functools
import gc
import os
import signal
import socket

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
# Bit-for-bit comparisons need one order of summation.
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '0')
# A server has a thread for each, 64 of them, and the servers of a test that are
# in this process end with it: a machine has room for 32,768 threads.
os.environ.setdefault('TF_GRPC_WORKER_CACHE_QUEUES', '4')
# Some tests run another worker's step while an op of theirs waits for it. On
# one core TensorFlow would have one thread for both. Programs go without this.
os.environ.setdefault('TF_NUM_INTEROP_THREADS', '4')

import numpy as np
import numpy.testing  # Slow to import: once for all tests.
import pytest
import tensorflow as tf
from absl import flags

from tests import sampling
from tests.forks import forked_programs
from tfplugin import _socket_filters
from tfplugin.testing import behaviors

tf1 = tf.compat.v1

pytest_plugins = ['tests.forks.forked_tests']
_NUM_LOGICAL_CPUS = 4
# Collections of garbage took a fifth of the tests' time: they begin after 700
# new objects by default, and one graph has many more.
_OBJECTS_PER_COLLECTION = 50_000
# Where this variable is set, TensorFlow does everything that it does for users.
_UNABRIDGED = 'UNABRIDGED'


def _write_no_graphs():
  """A fourth of a short training of Estimator is spent on graph.pbtxt, on the
  graph beside each checkpoint and on those in the file of events.
  """
  hook = tf1.train.CheckpointSaverHook
  make = hook.__init__

  @functools.wraps(make)
  def make_without_graphs(self, *args, **kwargs):
    # Estimator passes what its RunConfig says: a default would do nothing.
    make(self, *args, **{**kwargs, 'save_graph_def': False})

  hook.__init__ = make_without_graphs
  writer_of = tf1.summary.FileWriterCache.get

  def writer_of_no_graph(logdir):
    with tf.Graph().as_default():
      return writer_of(logdir)

  tf1.summary.FileWriterCache.get = staticmethod(writer_of_no_graph)
  tf1.summary.FileWriter.add_graph = lambda *args, **kwargs: None


def pytest_configure(config):
  del config
  # Code under test may read absl flags; unparsed flags raise.
  flags.FLAGS(['pytest'])
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * _NUM_LOGICAL_CPUS)
  # Estimator chooses Keras for the process; a test may use that first.
  assert tf.estimator.Estimator
  if not os.environ.get(_UNABRIDGED):
    _write_no_graphs()
  gc.freeze()  # Modules stay; they need not be looked through again.
  gc.set_threshold(_OBJECTS_PER_COLLECTION)


def pytest_collection_modifyitems(config, items):
  mine = sampling.sample(items, os.environ.get(sampling.SAMPLE, ''))
  chosen = set(map(id, mine))
  config.hook.pytest_deselected(
      items=[item for item in items if id(item) not in chosen])
  items[:] = mine


@pytest.fixture(autouse=True)
def same_state():
  """Every test starts from the same random state, and a new default graph.

  In eager execution, too, that graph knows how the last loss was reduced.
  """
  np.random.seed(0)
  tf.random.set_seed(0)
  tf1.reset_default_graph()


@pytest.fixture(scope='module')
def forking():
  """Programs that a test starts have imported TensorFlow already."""
  with forked_programs.forking():
    yield


@pytest.fixture
def filters_allowed():
  """Skips a test where the kernel lets root alone set filters on sockets."""
  with socket.socket() as tried:
    try:
      _socket_filters.attach(tried, _socket_filters.assembled((6, 0, 0, 0)))
    except PermissionError as e:
      pytest.skip(f'The kernel lets this user set no socket filters: {e}')


@pytest.fixture
def signal_handlers():
  """Python's own; a program in the background or below nohup ignores some."""
  before = {number: signal.signal(number, handler) for number, handler in (
      (signal.SIGINT, signal.default_int_handler),
      (signal.SIGTERM, signal.SIG_DFL), (signal.SIGHUP, signal.SIG_DFL))}
  yield
  for number, handler in before.items():
    signal.signal(number, handler)


@pytest.fixture(params=behaviors.BEHAVIORS)
def behavior(request):
  """Runs the test under v1 and under v2 behaviour; its value is the name."""
  with behaviors.behavior(request.param):
    yield request.param
