# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times tf.contrib's wrappers or tfplugin's with the same code; prints JSON.

  python3.7 -m benchmarks.contrib_reference [PART...]   the originals (1.15)
  python -m benchmarks.contrib_reference [PART...]      tfplugin (2.15)

Parts: dense, sparse, drop_stale, towers, elastic, servers; without one, all. On
TensorFlow 2.15 the behaviour is v1's, as on 1.15. Compare ratios of one run:
clipped to plain, wrapped to bare, elastic to async; times differ by machine.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
import sys
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
_SECONDS = 4.0
_BATCH = 32


def _contrib():
  if tf.__version__.startswith('1.'):
    import tensorflow.contrib as contrib
  else:
    from tfplugin import contrib
  return contrib


def _config():
  return tf1.ConfigProto(
      device_count={'CPU': 2}, allow_soft_placement=True,
      intra_op_parallelism_threads=2, inter_op_parallelism_threads=2)


def _least_ms(builders, rounds, steps, target=''):
  """Returns the least time of a step of each variant; the rounds alternate."""
  calls, best = [], [float('inf')] * len(builders)
  for build in builders:
    with tf1.Graph().as_default():
      op = build()
      session = tf1.Session(target, config=_config())
      session.run([tf1.global_variables_initializer(),
                   tf1.local_variables_initializer()])
      calls.append(session.make_callable(op))
      calls[-1]()
  for _ in range(rounds):
    for index, call in enumerate(calls):
      start = time.perf_counter()
      for _ in range(steps):
        call()
      best[index] = min(
          best[index], (time.perf_counter() - start) / steps * 1e3)
  return [round(each, 3) for each in best]


def _clip_step(rows, ids, clipped):
  """SGD on a table; its negative rate lets rows grow to the bound again."""
  table = tf1.get_variable('table', [rows, 64],
                           initializer=tf1.ones_initializer())
  if ids:
    number = np.random.RandomState(0).randint(0, 3000, ids) * (rows // 3000)
    gradient = tf.IndexedSlices(
        tf.ones([ids, 64]), tf.constant(number), tf.constant([rows, 64]))
  else:
    gradient = tf.ones([rows, 64])
  optimizer = tf1.train.GradientDescentOptimizer(-0.001)
  if clipped:
    optimizer = _contrib().opt.VariableClippingOptimizer(
        optimizer, {table: [1]}, 1.0)
  return optimizer.apply_gradients([(gradient, table)])


def _clip(rows, ids, rounds, steps):
  plain, clipped = _least_ms(
      [functools.partial(_clip_step, rows, ids, flag)
       for flag in (False, True)], rounds, steps)
  return {'plain_ms': plain, 'clipped_ms': clipped,
          'added_ms': round(clipped - plain, 3)}


def dense():
  """Clips a table of [500000, 64] after a dense step."""
  return _clip(500000, 0, 8, 1)


def sparse():
  """Clips the rows of 4,096 ids with repeats in tables of three sizes."""
  return {str(rows): _clip(rows, 4096, 10, 10)
          for rows in (10**5, 10**6, 10**7)}


def _stale_step(number, wrapped):
  hidden = tf.ones([_BATCH, 128])
  for index in range(number):
    hidden = tf.tanh(tf.matmul(hidden, tf1.get_variable(
        f'kernel_{index}', [128, 128])))
  optimizer = tf1.train.AdamOptimizer(1e-3)
  if wrapped:
    optimizer = _contrib().opt.DropStaleGradientOptimizer(optimizer, 10)
  return optimizer.minimize(
      tf.reduce_sum(hidden), tf1.train.get_or_create_global_step())


def drop_stale():
  """Adam, bare and wrapped, with 1 and with 50 variables."""
  result = {}
  for number in (1, 50):
    bare, wrapped = _least_ms([functools.partial(_stale_step, number, flag)
                               for flag in (False, True)], 20, 20)
    result[str(number)] = {'bare_ms': bare, 'wrapped_ms': wrapped,
                           'ratio': round(wrapped / bare, 3)}
  return result


def _dense_layer(x, name, units):
  kernel = tf1.get_variable(name + '/kernel', [x.shape[1], units])
  bias = tf1.get_variable(name + '/bias', [units],
                          initializer=tf1.zeros_initializer())
  return tf.matmul(x, kernel) + bias


def _mlp(x):
  x = tf.reshape(x, [-1, 784])
  for name in ('a', 'b'):
    x = tf.nn.relu(_dense_layer(x, name, 256))
  return _dense_layer(x, 'c', 10)


def _cnn(x):
  channels = 1
  for name, filters in (('a', 8), ('b', 16)):
    kernel = tf1.get_variable(name, [3, 3, channels, filters])
    x = tf.nn.relu(tf.nn.conv2d(x, kernel, strides=[1, 2, 2, 1],
                                padding='SAME'))
    channels = filters
  return _dense_layer(tf.reshape(x, [-1, 7 * 7 * 16]), 'c', 10)


def _data(rows):
  random = np.random.RandomState(0)
  return (tf.constant(random.rand(rows, 28, 28, 1).astype(np.float32)),
          tf.constant(random.randint(10, size=rows)))


def _loss(model, x, labels):
  return tf1.losses.sparse_softmax_cross_entropy(labels, model(x))


def _tower_step(model, devices):
  step = tf1.train.get_or_create_global_step()
  contrib = _contrib()

  def model_fn(features, labels, mode):
    loss = _loss(model, features, labels)
    optimizer = tf1.train.AdamOptimizer(1e-3)
    if devices:
      optimizer = contrib.estimator.TowerOptimizer(optimizer)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=optimizer.minimize(loss, step))

  x, labels = _data(256)
  if not devices:
    return model_fn(x, labels, 'train').train_op
  replicated = contrib.estimator.replicate_model_fn(model_fn, devices=devices)
  return replicated(features=x, labels=labels, mode='train').train_op


def towers():
  """A batch of 256 on one device, and split over two."""
  result = {}
  for model in (_mlp, _cnn):
    one, two = _least_ms(
        [functools.partial(_tower_step, model, devices)
         for devices in (None, ['/cpu:0', '/cpu:1'])], 10, 10)
    result[model.__name__[1:]] = {
        'one_device_ms': one, 'towers_ms': two, 'ratio': round(two / one, 3)}
  return result


def elastic():
  """Local steps per second and worker: 2 workers and 1 ps, as processes."""
  result = {'async': _cluster_rate(0)}
  for period in (1, 10, 100):
    rate = _cluster_rate(period)
    result[f'period_{period}'] = rate
    result[f'period_{period}_to_async'] = round(rate / result['async'], 3)
  return result


def _cluster_rate(period):
  rates = _cluster('elastic', period, 2)
  return round(sum(rates) / len(rates), 1)


def servers():
  """Milliseconds of a step with many variables of 1 kB: a worker and a ps."""
  return {f'{number} variables': _cluster('servers', number, 1)[0]
          for number in (220, 60)}


def _cluster(part, amount, num_worker):
  """Returns what each worker of a cluster of processes prints."""
  sockets = [socket.socket() for _ in range(1 + num_worker)]
  for each in sockets:
    each.bind(('127.0.0.1', 0))
  hosts = [f'127.0.0.1:{each.getsockname()[1]}' for each in sockets]
  for each in sockets:
    each.close()
  roles = [subprocess.Popen(
      role_command(sys.executable, role, part, amount, hosts),
      stdout=subprocess.PIPE) for role in range(len(hosts))]
  try:
    return [json.loads(role.communicate(timeout=120)[0].splitlines()[-1])
            for role in roles[1:]]
  finally:
    for role in roles:
      role.kill()
      role.wait()


def role_command(python, role, part, amount, hosts):
  """Returns the command of a task: of the server if `role` is 0, else a worker.

  `hosts` are their addresses. `part` is 'elastic', for steps/s with `amount` as
  period, or 'servers', for ms of a step with `amount` variables.
  """
  return [python, '-W', 'ignore', '-m', 'benchmarks.contrib_reference',
          '--role', str(role), part, str(amount), ','.join(hosts)]


def _run_role(role, part, amount, hosts):
  role, amount, hosts = int(role), int(amount), hosts.split(',')
  cluster = tf1.train.ClusterSpec({'ps': hosts[:1], 'worker': hosts[1:]})
  if role == 0:
    tf1.train.Server(cluster, 'ps', 0, config=_config()).join()
  server = tf1.train.Server(cluster, 'worker', role - 1, config=_config())
  device = f'/job:worker/task:{role - 1}'
  place = functools.partial(tf1.train.replica_device_setter,
                            worker_device=device, cluster=cluster)
  found = (_elastic_rate(amount, server.target, place, device, role - 1)
           if part == 'elastic' else
           _server_steps(amount, server.target, place))
  print(json.dumps(found), flush=True)


def _server_steps(number, target, place):
  """Returns ms of a step by optimizer, bare and with drop stale."""
  variants = [(name, wrapped) for name in ('SGD', 'Adam')
              for wrapped in (False, True)]
  times = _least_ms([functools.partial(_server_step, number, place, *variant)
                     for variant in variants], 8, 40, target)
  found = {}
  for (name, wrapped), time_ms in zip(variants, times):
    found.setdefault(name, {})['drop stale' if wrapped else 'bare'] = time_ms
  return found


def _server_step(number, place, name, wrapped):
  with tf1.device(place()):
    step = tf1.train.get_or_create_global_step()
    x = tf.constant(np.random.RandomState(0).randn(8, 16), tf.float32)
    loss = tf.add_n([
        tf.reduce_mean(tf.square(tf.matmul(
            x, tf1.get_variable(f'v{index}', [16, 16])) - 1))
        for index in range(number)])
    optimizer = (tf1.train.GradientDescentOptimizer(0.01) if name == 'SGD'
                 else tf1.train.AdamOptimizer(0.01))
    if wrapped:
      optimizer = _contrib().opt.DropStaleGradientOptimizer(optimizer, 10)
    return optimizer.minimize(loss, step)


def _elastic_rate(period, target, place, device, task):
  with tf1.device(place()):
    train, starts = _cluster_step(period, device, task)
    ready = tf1.report_uninitialized_variables(tf1.global_variables())
  with tf1.Session(target) as session:
    if task == 0:
      session.run(tf1.global_variables_initializer())
    while session.run(ready).size:
      time.sleep(0.05)
    for start in starts:
      session.run(start)
    return _rate(session.make_callable(train))


def _cluster_step(period, device, task):
  step = tf1.train.get_or_create_global_step()
  optimizer = tf1.train.GradientDescentOptimizer(0.01)
  if not period:
    return optimizer.minimize(_loss(_mlp, *_data(_BATCH)), step), []
  opt = _contrib().opt
  getter = opt.ElasticAverageCustomGetter(device)
  with tf1.variable_scope('', custom_getter=getter):
    loss = _loss(_mlp, *_data(_BATCH))
  with tf1.device(device):
    optimizer = opt.ElasticAverageOptimizer(
        optimizer, 2, getter, communication_period=period, rho=0.0)
    train = optimizer.minimize(loss, step)
  return train, [tf1.local_variables_initializer(),
                 optimizer.get_init_op(task)]


def _rate(step):
  begin, count = time.perf_counter() + _SECONDS / 2, 0
  while time.perf_counter() < begin:
    step()
  while time.perf_counter() < begin + _SECONDS:
    step()
    count += 1
  return count / _SECONDS


def main(arguments):
  """Runs the parts named, or one role of the cluster."""
  tf1.logging.set_verbosity(tf1.logging.FATAL)
  if not tf.__version__.startswith('1.'):
    tf1.disable_v2_behavior()
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices('CPU')[0],
        [tf.config.LogicalDeviceConfiguration()] * 2)
  if arguments[:1] == ['--role']:
    _run_role(*arguments[1:])
    return
  parts = (dense, sparse, drop_stale, towers, elastic, servers)
  report = {'tensorflow': tf.__version__}
  for part in parts:
    if not arguments or part.__name__ in arguments:
      report[part.__name__] = part()
      print(part.__name__, file=sys.stderr, flush=True)
  print(json.dumps(report, indent=1, sort_keys=True))


if __name__ == '__main__':
  main(sys.argv[1:])
