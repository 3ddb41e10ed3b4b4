# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds the graphs that scenarios describe; runs on TensorFlow 1.15 and 2.15.

TensorFlow comes in as an argument: `tf` of 1.15 or `tf.compat.v1` of 2.15.
"""

from __future__ import annotations

import numpy as np

_OPTIMIZERS = {
    'SGD': 'GradientDescentOptimizer',
    'Momentum': 'MomentumOptimizer',
    'Adagrad': 'AdagradOptimizer',
    'Adam': 'AdamOptimizer',
    'RMSProp': 'RMSPropOptimizer',
    'Ftrl': 'FtrlOptimizer',
}


def make_optimizer(tf1, spec):
  """Returns the optimizer of `[name, arguments]`."""
  name, arguments = spec
  return getattr(tf1.train, _OPTIMIZERS[name])(**arguments)


def session_config(tf1):
  """A session with four CPUs that leaves the graph as it is written."""
  config = tf1.ConfigProto(
      device_count={'CPU': 4}, allow_soft_placement=True,
      intra_op_parallelism_threads=1, inter_op_parallelism_threads=4)
  config.graph_options.optimizer_options.opt_level = -1
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  return config


def _initializer(tf1, value):
  """Returns an initializer that gives a partition its part of `value`."""
  def initial(shape, dtype=None, partition_info=None):
    offset = partition_info.var_offset if partition_info else [0] * value.ndim
    part = value[tuple(
        slice(start, start + size) for start, size in zip(offset, shape))]
    return tf1.constant(part, dtype)
  return initial


def make_variables(tf1, scenario):
  """Creates the variables of a scenario and returns them by name."""
  variables = {}
  for spec in scenario['model']:
    value = np.array(spec['value'], spec.get('dtype', 'float32'))
    options = {}
    if spec.get('use_resource'):
      options['use_resource'] = True
    if spec.get('parts'):
      options['partitioner'] = tf1.fixed_size_partitioner(spec['parts'])
    variables[spec['name']] = tf1.get_variable(
        spec['name'], value.shape, value.dtype.name,
        initializer=_initializer(tf1, value), **options)
  return variables


def losses(tf1, scenario, variables):
  """Returns the loss of each variable, by name.

  linear:    sum(factor * variable)
  quadratic: sum((variable - target)^2) / 2
  gather:    sum(factor * rows of the variable)
  none:      the variable has no part in the loss
  """
  result = {}
  for spec in scenario['model']:
    loss, var = spec['loss'], variables[spec['name']]
    dtype = spec.get('dtype', 'float32')
    number = lambda key: np.array(loss[key], dtype)  # noqa: E731, B023 (short)
    if loss['kind'] == 'linear':
      total = tf1.reduce_sum(
          number('factor') * tf1.convert_to_tensor(var))
    elif loss['kind'] == 'quadratic':
      total = tf1.reduce_sum(tf1.square(
          tf1.convert_to_tensor(var) - number('target'))) / 2
    elif loss['kind'] == 'gather':
      rows = tf1.nn.embedding_lookup(
          var, np.array(loss['ids'], np.int32), partition_strategy='div')
      total = tf1.reduce_sum(number('factor') * rows)
    else:
      continue
    result[spec['name']] = total
  return result


def total_loss(tf1, scenario, variables):
  """Returns the sum of the losses of all variables, as a scalar tensor."""
  parts = list(losses(tf1, scenario, variables).values())
  dtype = parts[0].dtype
  return tf1.add_n([tf1.cast(part, dtype) for part in parts])


def plain(value):
  """Returns numpy values as numbers and lists."""
  if isinstance(value, dict):
    return {key: plain(each) for key, each in value.items()}
  if isinstance(value, (list, tuple)):
    return [plain(each) for each in value]
  if isinstance(value, bytes):
    return value.decode()
  value = np.asarray(value)
  return value.astype(str).tolist() if value.dtype == object else value.tolist()


def names(variables):
  """Returns the sorted names of variables."""
  return sorted(variable.op.name for variable in variables)


def slots(session, optimizer, variables):
  """Returns the values of all slots, by variable and slot name."""
  return {
      f'{key}/{slot}': plain(session.run(optimizer.get_slot(var, slot)))
      for key, var in variables.items() for slot in optimizer.get_slot_names()
      if not isinstance(var, (list, tuple)) and hasattr(var, 'op')
      and optimizer.get_slot(var, slot) is not None}


def summary_values(session, tf1):
  """Runs all summaries; returns the values by tag."""
  merged = tf1.summary.merge_all()
  if merged is None:
    return {}
  text = session.run(merged)
  return {value.tag: value.simple_value
          for value in tf1.Summary.FromString(text).value}
