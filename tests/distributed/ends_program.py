# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A user's program whose tasks end in different ways.

Each step takes 1 off `w` in the task's own copy or in the cluster's variable,
and each is counted by the global step, so that a checkpoint tells how many
steps it has.

  python ends_program.py <settings, as JSON>
"""

import functools
import json
import os
import pathlib
import select
import signal
import sys
import threading
import time

import tensorflow as tf

import tfplugin
import tfplugin.distribute
import tfplugin.estimator
from tfplugin import hooks as hooks_lib

tf1 = tf.compat.v1
LIMIT_SECONDS = 60
# Of a run with a number of `threads`.
INTRA_OP_THREADS = 3
COMPRESSION = 'gzip'

_ELASTIC = {'communication_period': 1, 'moving_rate': 0.25}
DECORATORS = {
    'elastic': tfplugin.estimator.elastic_average(**_ELASTIC),
    'elastic_together': tfplugin.estimator.elastic_average(
        synchronous=True, **_ELASTIC),
    'drop_stale': tfplugin.estimator.drop_stale_gradients(staleness=10**6),
    'clip': tfplugin.estimator.clip_variables(rules={'w': []}, max_norm=1e6),
    'towers': tfplugin.replicate_model_fn(devices=['/cpu:0']),
    'cross_shard': tfplugin.estimator.cross_shard(devices=['/cpu:0']),
}
STRATEGIES = {
    'elastic_strategy': lambda: tfplugin.distribute.ElasticAverageStrategy(
        **_ELASTIC),
    'elastic_strategy_together': lambda: (
        tfplugin.distribute.ElasticAverageStrategy(
            synchronous=True, **_ELASTIC)),
    'drop_stale_strategy': lambda: (
        tfplugin.distribute.DropStaleGradientStrategy(staleness=10**6)),
    'packed_strategy': tfplugin.distribute.PackedParameterServerStrategy,
    'clip_strategy': lambda: _clipping(
        tfplugin.distribute.DropStaleGradientStrategy(staleness=10**6)),
    'clip_mirrored_strategy': lambda: _clipping(
        tf1.distribute.MirroredStrategy(['/cpu:0'])),
    'tower_strategy': lambda: tfplugin.distribute.TowerStrategy(['/cpu:0']),
    'cross_shard_strategy': lambda: tfplugin.distribute.CrossShardStrategy(
        ['/cpu:0']),
}


def _clipping(base):
  return tfplugin.distribute.VariableClippingStrategy(base, {'w': []}, 1e6)


def _model_fn(features, labels, mode, params):
  del labels
  w = tf1.get_variable('w', [], initializer=tf1.zeros_initializer())
  loss = w * tf.reduce_mean(features)
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf1.estimator.EstimatorSpec(mode, {'w': w + 0 * features})
  optimizer = tf1.train.GradientDescentOptimizer(params['rate'])
  if params['form'] == 'optimizer':
    optimizer = tfplugin.DropStaleGradientOptimizer(optimizer, 10**6)
  elif params['form'] == 'clip_optimizer':
    optimizer = tfplugin.VariableClippingOptimizer(optimizer, {w: []}, 1e6)
  train_op = optimizer.minimize(loss, tf1.train.get_global_step())
  return tf1.estimator.EstimatorSpec(
      mode, loss=loss, train_op=train_op,
      training_chief_hooks=[tf1.train.CheckpointSaverHook(
          params['own_saver'], save_steps=10**6)]
      if params['own_saver'] else None)


def _elastic_by_hand(features, labels, mode, params, config):
  """The same model with an ElasticAverageOptimizer of its own."""
  if mode != tf.estimator.ModeKeys.TRAIN:
    return _model_fn(features, labels, mode, params)
  in_cluster = config.num_ps_replicas > 0
  # Not `global_id_in_cluster`, which counts an evaluator, and left out numbers.
  workers = [(job, index) for job in ('chief', 'master', 'worker')
             if job in config.cluster_spec.jobs
             for index in config.cluster_spec.task_indices(job)]
  own_index = workers.index(
      (config.task_type, config.task_id)) if in_cluster else 0
  getter = tfplugin.ElasticAverageCustomGetter(
      f'/job:{config.task_type}/task:{config.task_id}' if in_cluster else '')
  with getter.scope():
    w = tf1.get_variable('w', [], initializer=tf1.zeros_initializer())
  loss = w * tf.reduce_mean(features)
  optimizer = tfplugin.ElasticAverageOptimizer(
      tf1.train.GradientDescentOptimizer(params['rate']),
      max(len(workers), 1), getter, rho=0.0, **_ELASTIC)
  train_op = optimizer.minimize(loss, tf1.train.get_global_step())
  saver = optimizer.swapping_saver()
  return tf1.estimator.EstimatorSpec(
      mode, loss=loss, train_op=train_op,
      scaffold=tf1.train.Scaffold(saver=saver),
      training_hooks=[optimizer.make_session_run_hook(
          config.is_chief, own_index)],
      training_chief_hooks=[hooks_lib.ElasticCheckpointHook(
          optimizer, config.model_dir, saver, save_steps=params['save_steps'])])


def _serving_input_fn():
  x = tf1.placeholder(tf.float32, [None])
  return tf.estimator.export.TensorServingInputReceiver(x, x)


class _Task:
  """One task: how much data it has, and the files by which it meets others."""

  def __init__(self, settings):
    self.directory = pathlib.Path(settings['directory'])
    task = json.loads(os.environ['TF_CONFIG'])['task']
    self.name = f'{task.get("type", "worker")}-{task.get("index", 0)}'
    self.settings = {**settings, **settings.get(self.name, {})}

  def batches(self):
    """Yields the batches; later ones wait for the files of other tasks."""
    for batch in range(self.settings.get('batches', 10**9)):
      if batch == 3:
        (self.directory / f'{self.name}.began').touch()
        self._wait_for(self.settings.get('others', ()), 'began')
      if batch == 5:
        self._wait_for(self.settings.get('after', ()), 'over')
      if batch == self.settings.get('hangs_after'):
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(5)  # Until it has reached every thread.
      time.sleep(self.settings.get('secs', 0))
      yield [1.0]
    self.over()

  def over(self):
    """Tells the others that this task makes no further step."""
    (self.directory / f'{self.name}.over').touch()

  def _wait_for(self, names, what):
    deadline = time.time() + LIMIT_SECONDS
    while time.time() < deadline and not all(
        (self.directory / f'{name}.{what}').exists() for name in names):
      time.sleep(0.01)

  def input_fn(self):
    data = tf1.data.Dataset.from_generator(
        self.batches, tf.float32, tf.TensorShape([1]))
    return data.map(lambda x: (x, x))


class _CountHook(tf1.train.SessionRunHook):
  """Writes how many steps the task has made; may stop it."""

  def __init__(self, task):
    self.task = task
    self.made = 0

  def after_run(self, run_context, run_values):
    self.made += 1
    if self.made == self.task.settings.get('stop_after'):
      self.task.over()
      run_context.request_stop()

  def end(self, session):
    path = self.task.directory / f'{self.task.name}.made'
    path.write_text(str(self.made))


class _FirstValueHook(tf1.train.SessionRunHook):
  """Writes 5 to the model's variable, late; or notes what it begins with."""

  def __init__(self, task):
    self._task = task
    self._secs = task.settings.get('writes_after')

  def begin(self):
    self._variable, = tf1.trainable_variables()
    self._value = tf1.placeholder(tf.float32, [])
    self._assign = self._variable.assign(self._value)

  def after_create_session(self, session, coord):
    if self._secs is not None:
      time.sleep(self._secs)
      session.run(self._assign, {self._value: 5.0})

  def before_run(self, run_context):
    path = self._task.directory / f'{self._task.name}.first'
    if not path.exists():
      path.write_text(str(run_context.session.run(self._variable)))


class _TogetherHook(tf1.train.SessionRunHook):
  """Runs ops that wait for each other: each needs a thread of its server.

  On a parameter server, which is another process, each op of the chief writes
  more than its pipe holds. The pipes are read when all of them have something.
  """

  def __init__(self, task, number):
    self._device = f'/job:{task.name.replace("-", "/task:")}/device:CPU:0'
    self._number = number
    has_ps = 'ps' in json.loads(os.environ['TF_CONFIG'])['cluster']
    # Ops of two tasks would take threads from each other.
    self._pipes = [str(task.directory / f'pipe{index}') for index in range(
        number if has_ps and task.name == 'chief-0' else 0)]

  def begin(self):
    barrier = threading.Barrier(self._number)
    with tf1.device(self._device):
      self._ops = [tf1.py_func(lambda: barrier.wait(LIMIT_SECONDS), [],
                               tf.int64).op for _ in range(self._number)]
    with tf1.device('/job:ps/task:0/device:CPU:0'):
      self._writes = [tf.io.write_file(path, 'x' * 2**18)
                      for path in self._pipes]

  def after_create_session(self, session, coord):
    session.run(self._ops)
    if self._pipes:
      self._write_together(session)

  def _write_together(self, session):
    for path in self._pipes:
      os.mkfifo(path)
    ends = [os.open(path, os.O_RDONLY | os.O_NONBLOCK) for path in self._pipes]
    reader = threading.Thread(target=self._read_all, args=(ends,))
    reader.start()
    session.run(self._writes)  # Fails if the pipes are closed before.
    reader.join()

  def _read_all(self, ends):
    deadline = time.time() + LIMIT_SECONDS
    while len(select.select(ends, [], [], LIMIT_SECONDS)[0]) < len(ends):
      if time.time() > deadline:
        break
      time.sleep(0.01)
    else:
      for end in ends:
        os.set_blocking(end, True)
        while os.read(end, 2**18):
          pass
    for end in ends:
      os.close(end)


def _note_server(path):
  """Writes to `path` with which settings the server of this task is made."""
  make = tf.distribute.Server.__init__

  @functools.wraps(make)
  def make_and_note(self, *args, **kwargs):
    make(self, *args, **kwargs)
    config = self.server_def.default_session_config
    path.write_bytes(config.SerializeToString())

  tf.distribute.Server.__init__ = make_and_note


def _early_stopping(estimator, count_hook):
  """As programs write it, after a number of steps of the task's own."""
  settings = count_hook.task.settings
  if 'stop_without_decrease' in settings:
    tf.io.gfile.makedirs(estimator.eval_dir())
    return [tf.estimator.experimental.stop_if_no_decrease_hook(
        estimator, 'loss', settings['stop_without_decrease'],
        run_every_secs=None, run_every_steps=10)]
  number = settings.get('stop_early_after')
  if number is None:
    return []
  return [tf.estimator.experimental.make_early_stopping_hook(
      estimator, lambda: count_hook.made >= number - 1, run_every_secs=None,
      run_every_steps=1)]


def main(settings):
  """Runs this process's part."""
  task = _Task(settings)
  threads = settings.get('threads')
  if threads:
    _note_server(task.directory / f'{task.name}.server')
  if settings.get('graphs_alone'):
    tf1.disable_eager_execution()
  if settings.get('early'):
    tf.config.threading.set_inter_op_parallelism_threads(threads)
  form, is_evaluator = settings['form'], task.name.startswith('evaluator')
  strategy = STRATEGIES[form]() if form in STRATEGIES else None
  config = {'train_distribute': strategy}
  later = config if 'replaced' in settings else {}
  estimator = tf1.estimator.Estimator(
      _elastic_by_hand if form == 'elastic_optimizer' else
      DECORATORS.get(form, lambda model_fn: model_fn)(_model_fn),
      config=tf1.estimator.RunConfig(
          str(task.directory / 'model'), **({} if later else config),
          save_checkpoints_steps=settings.get('save_steps', 10**6),
          keep_checkpoint_max=settings.get('keep', 5),
          session_config=threads and tf1.ConfigProto(
              inter_op_parallelism_threads=threads, allow_soft_placement=True,
              intra_op_parallelism_threads=INTRA_OP_THREADS,
              rpc_options={'compression_algorithm': COMPRESSION}) or (
                  settings.get('own_config') and tf1.ConfigProto()),
          experimental_max_worker_delay_secs=0).replace(**later),
      params={'form': form, 'rate': settings.get('rate', 1.0),
              'save_steps': settings.get('save_steps', 10**6),
              'own_saver': str(task.directory / 'model')
              if 'own_saver' in settings else None})
  count_hook = _CountHook(task)
  hooks = [] if is_evaluator else [
      *_early_stopping(estimator, count_hook), count_hook,
      *([_FirstValueHook(task)] if 'writes' in settings else []),
      *([_TogetherHook(task, threads)] if threads else [])]
  for _ in range(settings.get('calls', 1)):
    tfplugin.estimator.train_and_evaluate(
        estimator,
        tf1.estimator.TrainSpec(
            task.input_fn, settings.get('max_steps'), hooks),
        tf1.estimator.EvalSpec(
            lambda: tf.data.Dataset.from_tensors(([1.0], [1.0])), steps=1,
            start_delay_secs=settings.get('start_delay', 0),
            throttle_secs=settings.get('throttle', 0),
            exporters=tf1.estimator.FinalExporter('last', _serving_input_fn)),
        **settings.get('limits', {}))
  (task.directory / f'{task.name}.trained').touch()
  time.sleep(task.settings.get('afterwards_secs', 0))
  (task.directory / f'{task.name}.ended').touch()


if __name__ == '__main__':
  main(json.loads(sys.argv[1]))
