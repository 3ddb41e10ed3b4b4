# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small programs, one for each wrapper, on TensorFlow 1.15 or a newer one.

TensorFlow comes in as an argument: `tf` of 1.15 or `tf.compat.v1` of 2.15. The
loss has no random number, so that a program that goes on from a checkpoint ends
where the original one ended.
"""

from __future__ import annotations

import numpy as np

from testdata.contrib_goldens import models

STEPS = 3
_ADAM = ['Adam', {'learning_rate': 0.1}]
_MODEL = (
    {'name': 'table', 'value': [[3.0, 4.0], [0.6, 0.8], [-1.0, 2.0]],
     'loss': {'kind': 'gather', 'ids': [0, 2],
              'factor': [[1.0, -0.5], [0.25, 2.0]]}},
    {'name': 'dense/kernel', 'value': [[1.0, -2.0]],
     'loss': {'kind': 'quadratic', 'target': [[0.5, 0.25]]}},
)

# What is recorded: the wrapper, how it is saved, its optimizers.
CASES = {
    'cross_shard': {'wrapper': 'cross_shard', 'optimizers': [_ADAM]},
    'drop_stale': {'wrapper': 'drop_stale', 'optimizers': [_ADAM]},
    'elastic_average': {
        'wrapper': 'elastic_average',
        'optimizers': [['Momentum', {'learning_rate': 0.1, 'momentum': 0.5}]]},
    'elastic_average_swapped': {
        'wrapper': 'elastic_average', 'saver': 'swapping',
        'optimizers': [['Momentum', {'learning_rate': 0.1, 'momentum': 0.5}]]},
    'towers': {'wrapper': 'towers', 'optimizers': [_ADAM]},
    'towers_keras': {
        'wrapper': 'towers', 'keras': True, 'optimizers': [_ADAM]},
    'variable_clipping': {
        'wrapper': 'variable_clipping', 'optimizers': [_ADAM]},
    'variable_clipping_twice': {
        'wrapper': 'variable_clipping', 'optimizers': [_ADAM, _ADAM]},
}


class Program:
  """The graph of a case: its train op, its saver, and what can be read.

  Attributes:
    graph: The graph.
    train: The op of one step.
    saver: Saves what the original saved.
    start: Ops that are run in turn before the first step.
    values: What a user compares: the variables by name, the step.
  """

  def __init__(self, tf1, contrib, case):
    self._tf1, self._contrib, self._case = tf1, contrib, case
    self.graph = tf1.Graph()
    with self.graph.as_default():
      self.step = tf1.train.get_or_create_global_step()
      getattr(self, '_' + case['wrapper'])()

  def _losses(self):
    scenario = {'model': _MODEL}
    variables = models.make_variables(self._tf1, scenario)
    self.values = dict(variables, global_step=self.step)
    losses = models.losses(self._tf1, scenario, variables)
    if len(self._case['optimizers']) == 1:
      return variables, [self._tf1.add_n(list(losses.values()))]
    return variables, list(losses.values())

  def _train(self, wrap, losses):
    """One step of each optimizer; the first one has the step."""
    ops = []
    for number, (spec, loss) in enumerate(
        zip(self._case['optimizers'], losses)):
      optimizer = wrap(models.make_optimizer(self._tf1, spec))
      ops.append(optimizer.minimize(loss, self.step if not number else None))
    self.train = self._tf1.group(*ops)
    self.saver = self._tf1.train.Saver()
    self.start = [self._tf1.local_variables_initializer()]

  def _cross_shard(self):
    # One shard sums nothing. The original has no kernel off a TPU, but its
    # variables are those of the optimizer inside, which is run here.
    self._train(self._of_one_shard, self._losses()[1])

  def _of_one_shard(self, optimizer):
    of_shards = getattr(self._contrib, 'of_one_shard', None)
    return of_shards(optimizer) if of_shards else optimizer

  def _drop_stale(self):
    self._train(lambda optimizer: self._contrib.opt.DropStaleGradientOptimizer(
        optimizer, 10), self._losses()[1])

  def _variable_clipping(self):
    variables, losses = self._losses()
    dims = [{variable: [1]} for variable in variables.values()]
    self._train(lambda optimizer: self._contrib.opt.VariableClippingOptimizer(
        optimizer, dims.pop(0), 2.0), losses)

  def _elastic_average(self):
    tf1, opt = self._tf1, self._contrib.opt
    getter = opt.ElasticAverageCustomGetter(worker_device='/cpu:0')
    made = []
    with tf1.device('/cpu:0'):
      with tf1.variable_scope('', custom_getter=getter):
        _, losses = self._losses()

      def wrap(optimizer):
        made.append(opt.ElasticAverageOptimizer(
            optimizer, num_worker=1, ea_custom_getter=getter,
            communication_period=2, moving_rate=0.25, rho=0.0))
        return made[0]

      self._train(wrap, losses)
    self.start.append(made[0].get_init_op(0))
    if self._case.get('saver') == 'swapping':
      self.saver = made[0].swapping_saver()
    self.values = {'global_step': self.step}
    for variable in tf1.global_variables():
      name = variable.op.name
      if name.startswith('global_center_variable/'):
        self.values[name.split('/', 1)[1]] = variable

  def _towers(self):
    tf1, estimator = self._tf1, self._contrib.tf_estimator
    rows = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0], [-1.0, 1.0]],
                    np.float32)
    labels = rows[:, :1] * 3 - rows[:, 1:]

    def model_fn(features, labels, mode):
      if self._case.get('keras'):
        y = tf1.keras.layers.Dense(1, kernel_initializer='zeros')(features)
      else:
        # The original finds no layer again by an automatic name.
        y = tf1.layers.dense(
            features, 1, kernel_initializer=tf1.zeros_initializer(),
            name='dense')
      loss = tf1.losses.mean_squared_error(
          labels, y, reduction=tf1.losses.Reduction.MEAN)
      optimizer = self._contrib.estimator.TowerOptimizer(
          models.make_optimizer(tf1, self._case['optimizers'][0]))
      return estimator.EstimatorSpec(
          mode, loss=loss, train_op=optimizer.minimize(
              loss, tf1.train.get_global_step()))

    replicated = self._contrib.estimator.replicate_model_fn(
        model_fn, tf1.losses.Reduction.MEAN, devices=['/cpu:0', '/cpu:1'])
    spec = replicated(tf1.constant(rows), tf1.constant(labels), 'train')
    self.train, self.saver = spec.train_op, tf1.train.Saver()
    self.start = [tf1.local_variables_initializer()]
    self.values = {
        variable.op.name: variable for variable in tf1.global_variables()
        if variable.op.name in ('dense/kernel', 'dense/bias', 'global_step')}

  def run(self, checkpoint=None, save_as=None):
    """Trains for `STEPS` steps.

    Args:
      checkpoint: What it goes on from; None for the variables' first values.
      save_as: Where the end is saved, or None.

    Returns:
      The values at the end, by name.
    """
    tf1 = self._tf1
    with self.graph.as_default(), tf1.Session(
        config=models.session_config(tf1)) as session:
      session.run(tf1.global_variables_initializer())
      if checkpoint:
        self.saver.restore(session, checkpoint)
      for op in self.start:
        session.run(op)
      for _ in range(STEPS):
        session.run(self.train)
      if save_as:
        self.saver.save(session, save_as, write_meta_graph=False,
                        write_state=False)
      return models.plain(session.run(
          {name: tf1.convert_to_tensor(value)
           for name, value in self.values.items()}))
