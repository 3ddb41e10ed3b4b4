# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every wrapper, and every nest of two, against the optimizer contract."""

import itertools

import pytest
import tensorflow as tf

import tfplugin
from tfplugin.optimizers import wrapper
from tfplugin.testing import behaviors
from tfplugin.testing import contract_models
from tfplugin.testing import optimizer_contract

tf1 = tf.compat.v1
Wrapping = optimizer_contract.Wrapping


class OwnOptimizer(tf1.train.Optimizer):
  """A user's subclass: signed steps with one slot, in the v1 protocol."""

  def __init__(self):
    super().__init__(False, 'Own')

  def _create_slots(self, var_list):
    for variable in var_list:
      self._zeros_slot(variable, 'steps', self._name)

  def _step(self, grad, var):
    steps = self.get_slot(var, 'steps')
    count = steps.assign_add(tf.ones_like(steps))
    rate = tf.cast(0.125, var.dtype.base_dtype) / count
    return var.assign_sub(rate * tf.sign(grad))

  def _apply_dense(self, grad, var):
    return self._step(grad, var)

  def _resource_apply_dense(self, grad, handle):
    return self._step(grad, handle)

  def _apply_sparse(self, grad, var):
    return self._step(tf.convert_to_tensor(grad), var)

  def _resource_apply_sparse(self, grad, handle, indices):
    return self._step(tf.scatter_nd(
        indices[:, tf.newaxis], grad,
        tf.cast(handle.shape, indices.dtype)), handle)


OPTIMIZERS = {
    'SGD': lambda: tf1.train.GradientDescentOptimizer(0.125),
    'Momentum': lambda: tf1.train.MomentumOptimizer(0.125, 0.9),
    'Nesterov': lambda: tf1.train.MomentumOptimizer(
        0.125, 0.9, use_nesterov=True),
    'Adagrad': lambda: tf1.train.AdagradOptimizer(0.125),
    'Adam': lambda: tf1.train.AdamOptimizer(0.125),
    'RMSProp': lambda: tf1.train.RMSPropOptimizer(0.125, momentum=0.5),
    'Ftrl': lambda: tf1.train.FtrlOptimizer(0.125),
    'own': OwnOptimizer,
}

def elastic(**settings) -> Wrapping:
  """One worker of elastic averaging, with these arguments of the optimizer."""
  made = {}

  def make_getter():
    made['getter'] = tfplugin.ElasticAverageCustomGetter('/device:CPU:0')
    return made['getter']

  def wrap(opt, variables):
    del variables
    made['optimizer'] = tfplugin.ElasticAverageOptimizer(
        opt, 1, made['getter'], **settings)
    return made['optimizer']

  return Wrapping(
      wrap, make_getter, lambda _: [made['optimizer'].get_init_op(0)],
      own_variables=r'global_center_variable/.*|.*local_step(_\d+)?:0|'
                    r'elastic_average/turns(_\d+)?:0',
      checkpoint_moves=False)


# Settings under which the wrapper's rule does nothing.
WRAPPINGS = {
    'CrossShardOptimizer': Wrapping(
        lambda opt, variables: tfplugin.CrossShardOptimizer(opt)),
    'DropStaleGradientOptimizer': Wrapping(
        lambda opt, variables: tfplugin.DropStaleGradientOptimizer(
            opt, staleness=1000),
        own_variables=r'(DropStaleGradient(_\d+)?/)?'
                      r'(stale_counter|num_dropped|num_applied):0'),
    # Its checkpoints hold the centre: the swapping saver's own tests move them.
    'ElasticAverageOptimizer': elastic(
        communication_period=1, moving_rate=0.0, rho=0.0),
    'TowerOptimizer': Wrapping(
        lambda opt, variables: tfplugin.TowerOptimizer(opt)),
    'VariableClippingOptimizer': Wrapping(
        lambda opt, variables: tfplugin.VariableClippingOptimizer(
            opt, {v: [v.shape.rank - 1] for v in variables}, 1e4)),
}

# Nests that no test runs, and why.
REFUSED_NESTS = {
    ('ElasticAverageOptimizer', 'ElasticAverageOptimizer'):
        'both would move the one centre that the getter gave a variable',
}


def _nest(outer: Wrapping, inner: Wrapping) -> Wrapping:
  return Wrapping(
      lambda opt, variables: outer.wrap(inner.wrap(opt, variables), variables),
      lambda: inner.make_getter() or outer.make_getter(),
      lambda optimizer: [*outer.init_ops(optimizer),
                         *inner.init_ops(optimizer)],
      own_variables=f'{outer.own_variables}|{inner.own_variables}')


NESTS = {f'{outer}({inner})': _nest(WRAPPINGS[outer], WRAPPINGS[inner])
         for outer, inner in itertools.product(WRAPPINGS, repeat=2)
         if (outer, inner) not in REFUSED_NESTS}

# A nest hands on the same calls as its two halves, which are run with every
# optimizer under both behaviours. A nest is run under each behaviour once: with
# Adam, which has slots and non-slot variables, and with the others in turn.
_IN_TURN = [name for name in OPTIMIZERS if name != 'Adam']
CELLS = list(itertools.product(WRAPPINGS, OPTIMIZERS, behaviors.BEHAVIORS))
for _index, _nest_name in enumerate(NESTS):
  CELLS += [
      (_nest_name, 'Adam', behaviors.BEHAVIORS[_index % 2]),
      (_nest_name, _IN_TURN[_index % len(_IN_TURN)],
       behaviors.BEHAVIORS[1 - _index % 2])]
ALL = {**WRAPPINGS, **NESTS}


@pytest.mark.sampled(8)
@pytest.mark.parametrize('wrapping, optimizer, behavior', CELLS,
                         indirect=['behavior'])
def test_equals_bare(behavior, wrapping, optimizer):
  optimizer_contract.check_equals_bare(ALL[wrapping], OPTIMIZERS[optimizer])


@pytest.mark.parametrize('wrapping', WRAPPINGS)
def test_equals_bare_with_reference_variables_in_control_flow_v2(wrapping):
  tf1.disable_resource_variables()
  try:
    optimizer_contract.check_equals_bare(
        ALL[wrapping], OPTIMIZERS['Adam'])
  finally:
    tf1.enable_resource_variables()


@pytest.mark.parametrize('wrapping', WRAPPINGS)
@pytest.mark.parametrize('check', [
    check for check in optimizer_contract.CHECKS
    if check is not optimizer_contract.check_equals_bare])
def test_calls(behavior, check, wrapping):
  check(WRAPPINGS[wrapping], OPTIMIZERS['Adam'])


@pytest.mark.parametrize('wrapping', WRAPPINGS)
def test_checkpoint_moves(behavior, wrapping, tmp_path):
  if WRAPPINGS[wrapping].checkpoint_moves:
    optimizer_contract.check_checkpoint_moves(
        WRAPPINGS[wrapping], OPTIMIZERS['Adam'], str(tmp_path))


def test_every_public_optimizer_has_an_entry():
  public = {name for name in tfplugin.__all__ if name.endswith('Optimizer')}
  assert public == set(WRAPPINGS)


def test_every_nest_is_run_or_refused_with_a_reason():
  pairs = set(itertools.product(WRAPPINGS, repeat=2))
  run = {tuple(nest[:-1].split('(')) for nest in NESTS}
  assert run | set(REFUSED_NESTS) == pairs
  assert not run & set(REFUSED_NESTS)
  assert all(REFUSED_NESTS.values())


def test_every_kind_of_gradient_is_in_the_model(behavior):
  with tf.Graph().as_default():
    model = contract_models.build()
    gradients = tf.gradients(model.loss, model.variables)
    kinds = {v.op.name.split('/')[0]: (v, g)
             for g, v in zip(gradients, model.variables)}
    repeated = kinds['repeated_ids'][1].indices
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      ids = list(session.run(repeated))
  assert set(kinds) == set(contract_models.GRADIENT_KINDS)
  assert {v.dtype.base_dtype for v, _ in kinds.values()} == {
      tf.float16, tf.float32, tf.float64}
  for kind, (_, gradient) in kinds.items():
    assert isinstance(gradient, tf.IndexedSlices) == (
        kind in ('sparse', 'repeated_ids', 'partitioned_sparse'))
  assert len(ids) > len(set(ids))


class _Doubles(wrapper.OptimizerWrapper):
  """A wrapper that breaks the contract: it applies everything twice."""

  def __init__(self, opt):
    super().__init__(opt, False, 'Doubles')

  def apply_gradients(self, grads_and_vars, global_step=None, name=None,
                      skip_gradients_aggregation=False):
    return super().apply_gradients(
        [(g if g is None else g * 2.0, v) for g, v in grads_and_vars
         if not isinstance(g, tf.IndexedSlices)], global_step, name)


def test_a_wrapper_that_changes_values_fails():
  with pytest.raises(AssertionError, match='differs from the bare optimizer'):
    optimizer_contract.check_equals_bare(
        Wrapping(lambda opt, variables: _Doubles(opt)), OPTIMIZERS['SGD'])


class _Forgetful(wrapper.OptimizerWrapper):
  """A wrapper that breaks the contract: it hides the inner variables."""

  def __init__(self, opt):
    super().__init__(opt, False, 'Forgetful')

  def variables(self):
    return []


def test_a_wrapper_that_hides_variables_fails():
  with pytest.raises(AssertionError):
    optimizer_contract.check_equals_bare(
        Wrapping(lambda opt, variables: _Forgetful(opt)), OPTIMIZERS['Adam'])


class TestMixin(optimizer_contract.OptimizerContract):
  """The mixin, as a user has it."""

  wrapping = WRAPPINGS['CrossShardOptimizer']
  optimizers = (OPTIMIZERS['SGD'],)
