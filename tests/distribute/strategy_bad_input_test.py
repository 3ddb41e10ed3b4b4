# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Strategies refuse bad input: a table of strategies and kinds of it.

A cell is a refusal, or says why that input is not bad for the strategy.
"""

import itertools
import json
import typing

import numpy as np
import pytest
import tensorflow as tf

from tfplugin import distribute

tf1 = tf.compat.v1

TWO = ['/cpu:0', '/cpu:1']
ROWS = np.ones([4, 1], np.float32)
MIRRORED = 'tf.distribute.MirroredStrategy'


class Refused(typing.NamedTuple):
  """A user's call, and the error that it raises."""

  call: typing.Callable
  error: type
  words: str


PS = tf1.distribute.experimental.ParameterServerStrategy
elastic = distribute.ElasticAverageStrategy
packed = distribute.PackedParameterServerStrategy


def mirrored():
  return tf.distribute.MirroredStrategy(
      TWO, tf.distribute.ReductionToOneDevice())


def drop_stale(staleness=1, **settings):
  return distribute.DropStaleGradientStrategy(staleness=staleness, **settings)


def tower(devices=TWO, **settings):
  return distribute.TowerStrategy(devices, **settings)


def cross_shard(devices=TWO, **settings):
  return distribute.CrossShardStrategy(devices, **settings)


def clipping(base=None, rules=None, max_norm=1.0):
  return distribute.VariableClippingStrategy(
      base or mirrored(), rules or {'kernel': 0}, max_norm)


def nested(make):
  """Enters a strategy in a graph, inside another."""
  def call():
    with tf.Graph().as_default(), mirrored().scope(), make().scope():
      pass
  return call


def canned(make):
  """Trains with the Keras optimizer that `tf.estimator` brings."""
  def call():
    estimator = tf.estimator.DNNClassifier(
        [2], [tf.feature_column.numeric_column('x')],
        config=tf.estimator.RunConfig(train_distribute=make()))
    estimator.train(lambda: tf.data.Dataset.from_tensors(
        ({'x': ROWS}, np.ones([4], np.int32))))
  return call


def fit(make):
  """Trains a Keras model by `Model.fit`."""
  def call():
    with make().scope():
      model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
      model.compile('sgd', 'mse')
    model.fit(ROWS, ROWS, batch_size=2, verbose=0)
  return call


def rules_without_match():
  """A training step that is refused before it changes anything."""
  strategy = clipping(rules={'embeding': 0})
  with strategy.scope():
    table = tf.Variable([[2.0]], name='embedding')
    sgd = tf1.train.GradientDescentOptimizer(1.0)
  try:
    strategy.run(lambda: sgd.apply_gradients([(tf.ones([1, 1]), table)]))
  finally:
    assert table.numpy() == 2.0


def rules_with_bad_dims():
  strategy = clipping(rules={'kernel': 2})
  with strategy.scope():
    kernel = tf.Variable([[2.0]], name='kernel')
    sgd = tf1.train.GradientDescentOptimizer(1.0)
  strategy.run(lambda: sgd.apply_gradients([(tf.ones([1, 1]), kernel)]))


def in_cluster(make, jobs=('chief', 'worker')):
  """Makes a strategy as the chief of a cluster without a ps."""
  def call():
    with pytest.MonkeyPatch.context() as patch:
      patch.setenv('TF_CONFIG', json.dumps({
          'cluster': {job: ['localhost:1'] for job in jobs},
          'task': {'type': 'chief', 'index': 0}}))
      make()
  return call


def with_bad_tf_config(make):
  def call():
    with pytest.MonkeyPatch.context() as patch:
      patch.setenv('TF_CONFIG', '{"cluster": ')
      make()
  return call


def unknown_device(make):
  words = r'`devices` must exist in this process.*CPU:9\. There are.*CPU:3'
  return Refused(make, ValueError, words)


NAMES = [name for name in distribute.__all__ if name.endswith('Strategy')]
NO_DEVICES = 'it takes no devices'
ONE_IS_FINE = 'one device is trained on as without a strategy'
NO_GROUPS = 'it has no groups'
NO_RULES = 'it has no rules'
ANY_OPTIMIZER = 'Keras optimizers work: see strategy_matrix_test'
NO_SESSION = 'Keras models work: see strategy_keras_test'
NO_SETTINGS = 'it has no setting'
NO_CLUSTER = 'it needs no parameter server'
NESTED = r'must not be entered inside another one.*{} inside MirroredStrategy'
KERAS = r'`optimizer` must be a .*{}.*Received.*keras.*tf.compat.v1.estimator'
EAGER = r'{} works in a graph.*Received: a call in eager mode.*{}'
NO_PS = 'must have a `ps`.*Received: the jobs chief, worker. Add'
BAD_JSON = r'`TF_CONFIG` must be JSON'


def each(reason):
  return dict.fromkeys(NAMES, reason)


TABLE = {
    'unknown device': {
        **each(NO_DEVICES),
        'ElasticAverageStrategy': unknown_device(
            lambda: elastic(devices=['/cpu:0', '/cpu:9'])),
        'TowerStrategy': unknown_device(
            lambda: tower(['/cpu:0', '/cpu:9']).run(lambda: tf.constant(1))),
        'CrossShardStrategy': unknown_device(
            lambda: cross_shard(['/cpu:0', '/cpu:9'])),
    },
    'one device where two are needed': {
        **each(NO_DEVICES),
        'ElasticAverageStrategy': Refused(
            lambda: elastic(devices=['/cpu:0']), ValueError,
            '`devices` must name two or more.*Received: /device:CPU:0. None'),
        'TowerStrategy': ONE_IS_FINE,
        'CrossShardStrategy': Refused(
            lambda: cross_shard(['/cpu:0'], group_assignment=[[0], [1]]),
            ValueError, r'`group_assignment` must be.*range\(1\)'),
    },
    'groups that do not fit': {
        **each(NO_GROUPS),
        'CrossShardStrategy': Refused(
            lambda: cross_shard(group_assignment=[[0, 1, 2]]), ValueError,
            r'`group_assignment` must be a permutation of range\(2\).*'
            r'\[\[0, 1, 2\]\]. Name each of the 2'),
    },
    'rules that match nothing': {
        **each(NO_RULES),
        'VariableClippingStrategy': Refused(
            rules_without_match, ValueError,
            r"`rules` must select.*'embeding'.*Near names: \['embedding'\]"),
    },
    'rules that do not fit': {
        **each(NO_RULES),
        'VariableClippingStrategy': Refused(
            rules_with_bad_dims, ValueError,
            r"dims of 'kernel' must be in \[-2, 2\)"),
    },
    'a strategy inside a strategy': {
        'ElasticAverageStrategy': Refused(
            nested(elastic), RuntimeError,
            NESTED.format('ElasticAverageStrategy')),
        'DropStaleGradientStrategy': Refused(
            nested(drop_stale), RuntimeError,
            NESTED.format('DropStaleGradientStrategy')),
        'PackedParameterServerStrategy': Refused(
            nested(packed), RuntimeError,
            NESTED.format('PackedParameterServerStrategy')),
        'TowerStrategy': Refused(
            nested(tower), RuntimeError, NESTED.format('TowerStrategy')),
        'CrossShardStrategy': Refused(
            nested(cross_shard), RuntimeError,
            NESTED.format('CrossShardStrategy')),
        'VariableClippingStrategy': Refused(
            nested(clipping), RuntimeError,
            NESTED.format('VariableClippingStrategy over MirroredStrategy')),
    },
    'a Keras optimizer where only v1 works': {
        'ElasticAverageStrategy': Refused(
            canned(elastic), TypeError,
            KERAS.format('ElasticAverageStrategy') + ".*count_steps='local'"),
        'DropStaleGradientStrategy': Refused(
            canned(drop_stale), TypeError,
            KERAS.format('DropStaleGradientStrategy')),
        'PackedParameterServerStrategy': ANY_OPTIMIZER,
        'TowerStrategy': ANY_OPTIMIZER,
        'CrossShardStrategy': Refused(
            fit(lambda: cross_shard(group_assignment=[[0], [1]])), TypeError,
            KERAS.format('`group_assignment`') + '.*leave out the groups'),
        'VariableClippingStrategy': Refused(
            canned(lambda: clipping(drop_stale())), TypeError,
            KERAS.format('DropStaleGradientStrategy')),
    },
    'Model.fit with parameter servers of v1': {
        'ElasticAverageStrategy': Refused(
            fit(elastic), RuntimeError,
            EAGER.format('ElasticAverageStrategy', '`Model.fit`.*`devices`')),
        'DropStaleGradientStrategy': Refused(
            fit(drop_stale), RuntimeError,
            EAGER.format('DropStaleGradientStrategy', MIRRORED)),
        'PackedParameterServerStrategy': Refused(
            fit(packed), RuntimeError,
            EAGER.format('PackedParameterServerStrategy', MIRRORED)),
        'TowerStrategy': NO_SESSION,
        'CrossShardStrategy': NO_SESSION,
        'VariableClippingStrategy': Refused(
            fit(lambda: clipping(PS())), RuntimeError,
            EAGER.format('VariableClippingStrategy over .*ParameterServer.*',
                         f'over `{MIRRORED}')),
    },
    'a setting out of range': {
        'ElasticAverageStrategy': Refused(
            lambda: elastic(moving_rate=1.5), ValueError,
            r'`moving_rate` must be a number in \[0, 1\]. Received: 1.5'),
        'DropStaleGradientStrategy': Refused(
            lambda: drop_stale(-1), ValueError,
            '`staleness` must be at least 0. Received: -1'),
        'PackedParameterServerStrategy': NO_SETTINGS,
        'TowerStrategy': Refused(
            lambda: tower(loss_reduction='none'), ValueError,
            "`loss_reduction` must be one of.*Received: 'none'"),
        'CrossShardStrategy': Refused(
            lambda: cross_shard(reduction='mean'), ValueError,
            "`reduction` must be.*Received: 'mean'"),
        'VariableClippingStrategy': Refused(
            lambda: clipping(max_norm=0.0), ValueError,
            '`max_norm` must be finite and greater than 0. Received: 0.0'),
    },
    'a setting of a wrong type': {
        'ElasticAverageStrategy': Refused(
            lambda: elastic(sparse_exchange='no'), TypeError,
            "`sparse_exchange` must be True or False. Received: 'no'"),
        'DropStaleGradientStrategy': Refused(
            lambda: drop_stale('1'), TypeError,
            "`staleness` must be an integer.*Received: '1'"),
        'PackedParameterServerStrategy': NO_SETTINGS,
        'TowerStrategy': Refused(
            lambda: tower('/cpu:0'), TypeError,
            "`devices` must be a list of device strings. Received: '/cpu:0'"),
        'CrossShardStrategy': Refused(
            lambda: cross_shard([0, 1]), TypeError,
            r'`devices` must be a list of device strings. Received: \[0, 1\]'),
        'VariableClippingStrategy': Refused(
            lambda: clipping(tf.distribute.MirroredStrategy), TypeError,
            '`base_strategy` must be an instance of .*Received: <class'),
    },
    'a setting that cannot be read': {
        'ElasticAverageStrategy': Refused(
            lambda: elastic(cluster_resolver='localhost:1'), TypeError,
            "`cluster_resolver` must be a.*Received: 'localhost:1'"),
        'DropStaleGradientStrategy': Refused(
            lambda: drop_stale(cluster_resolver='localhost:1'), TypeError,
            "`cluster_resolver` must be a.*Received: 'localhost:1'"),
        'PackedParameterServerStrategy': Refused(
            lambda: packed('localhost:1'), TypeError,
            "`cluster_resolver` must be a.*Received: 'localhost:1'"),
        'TowerStrategy': Refused(
            lambda: tower(['nonsense']), ValueError,
            "`devices` must hold device strings. Received: 'nonsense'"),
        'CrossShardStrategy': Refused(
            lambda: cross_shard(['nonsense', '/cpu:0']), ValueError,
            "`devices` must hold device strings. Received: 'nonsense'"),
        'VariableClippingStrategy': Refused(
            lambda: clipping(rules={'(': 0}), ValueError,
            r"`rules` must be a regular expression.*Received: '\('"),
    },
    'a cluster without a parameter server': {
        'ElasticAverageStrategy': Refused(
            in_cluster(elastic), ValueError, NO_PS),
        'DropStaleGradientStrategy': Refused(
            in_cluster(drop_stale), ValueError, NO_PS),
        'PackedParameterServerStrategy': Refused(
            in_cluster(packed), ValueError, NO_PS),
        'TowerStrategy': NO_CLUSTER,
        'CrossShardStrategy': NO_CLUSTER,
        'VariableClippingStrategy': Refused(
            in_cluster(lambda: clipping(elastic())), ValueError, NO_PS),
    },
    'a TF_CONFIG that is no JSON': {
        'ElasticAverageStrategy': Refused(
            with_bad_tf_config(elastic), ValueError, BAD_JSON),
        'DropStaleGradientStrategy': Refused(
            with_bad_tf_config(drop_stale), ValueError, BAD_JSON),
        'PackedParameterServerStrategy': Refused(
            with_bad_tf_config(packed), ValueError, BAD_JSON),
        'TowerStrategy': 'it is of one process',
        'CrossShardStrategy': Refused(
            with_bad_tf_config(cross_shard), ValueError, BAD_JSON),
        'VariableClippingStrategy': Refused(
            with_bad_tf_config(lambda: clipping(elastic())), ValueError,
            BAD_JSON),
    },
}

CELLS = [(kind, name) for kind, row in TABLE.items()
         for name, cell in row.items() if isinstance(cell, Refused)]


def test_every_cell_is_a_refusal_or_has_a_reason():
  for kind, name in itertools.product(TABLE, NAMES):
    assert isinstance(TABLE[kind][name], (Refused, str)), (kind, name)
  assert all(set(row) == set(NAMES) for row in TABLE.values())
  assert {name for _, name in CELLS} == set(NAMES)


@pytest.mark.parametrize('kind, name', CELLS)
def test_refused(kind, name):
  cell = TABLE[kind][name]
  graph = tf1.get_default_graph()
  before = len(graph.get_operations())
  with pytest.raises(cell.error, match=f'(?s){cell.words}') as raised:
    cell.call()
  # The rule, what was received, and after it the remedy.
  assert 'Received: ' in str(raised.value)
  assert '. ' in str(raised.value).split('Received: ')[-1]
  assert not tf.distribute.has_strategy()
  assert len(graph.get_operations()) == before
