# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is trained on every TensorFlow, and what is kept of it.

No seed decides where a training begins: the numbers that a seed gives depend on
how many ops a graph has, which is TensorFlow's own affair.
"""

from __future__ import annotations

import functools
import itertools
import re
import tempfile
from typing import Callable

import numpy as np
import tensorflow as tf

import tfplugin
from tests.conformance import contract_test
from tests.examples import conftest as examples
from tests.programs import by_hand
from tests.programs import forms
from tests.programs import programs
from tfplugin.bin import datasets
from tfplugin.testing import behaviors
from tfplugin.testing import optimizer_contract

tf1 = tf.compat.v1

Values = dict[str, np.ndarray]
Train = Callable[[], Values]

EXAMPLE_STEPS = 2
_ROWS = 15
# Softmax sees differences of scores only. Gradients of queries and keys are
# sums that nearly cancel, of a key's bias to nothing: their moments hold, for
# the most part, what roundings leave. The weights that follow are kept.
_ONLY_ROUNDING = 'attention/(query|key)/.*/moment'


def _trained(wrapping: optimizer_contract.Wrapping,
             make_optimizer: optimizer_contract.MakeOptimizer,
             behavior: str) -> Values:
  """Trains the model of the contract, with gradients of every kind."""
  with behaviors.behavior(behavior), optimizer_contract.trainer(
      wrapping, make_optimizer, optimizer_contract.minimize) as trainer:
    trainer.run(3)
    return trainer.values()


# With settings under which the rule of a wrapper acts; under others each is the
# optimizer that it wraps, bit for bit, as contract_test.py shows. Those of
# devices are among the forms of programs.
_ACTING = {
    'DropStaleGradientOptimizer': optimizer_contract.Wrapping(
        lambda opt, _: tfplugin.DropStaleGradientOptimizer(opt, staleness=0)),
    'ElasticAverageOptimizer': contract_test.elastic(
        communication_period=2, moving_rate=0.25, rho=0.5),
    'VariableClippingOptimizer': optimizer_contract.Wrapping(
        lambda opt, variables: tfplugin.VariableClippingOptimizer(
            opt, {v: [v.shape.rank - 1] for v in variables}, 1.0)),
}


def contract() -> dict[str, Train]:
  """Every optimizer of the contract, and every wrapper around Adam."""
  cases = {name: (optimizer_contract.BARE, make)
           for name, make in contract_test.OPTIMIZERS.items()}
  cases.update({name: (wrapping, contract_test.OPTIMIZERS['Adam'])
                for name, wrapping in _ACTING.items()})
  return {f'{name}, {behavior}': functools.partial(_trained, *case, behavior)
          for (name, case), behavior in itertools.product(
              cases.items(), behaviors.BEHAVIORS)}


def _under(form: str, program: str, behavior: str) -> Values:
  """Trains a program with an Estimator, in one form of a wrapper."""
  with behaviors.behavior(behavior), tempfile.TemporaryDirectory() as directory:
    return forms.train(
        programs.PROGRAMS[program], forms.FORMS[form], directory)


# Of small graphs, dense and sparse: these are trained under every form.
_SMALL = ('MNIST', 'DeepFM', 'GAN, one optimizer', 'gradient accumulation',
          'early stopping')


def of_programs() -> dict[str, Train]:
  """Every program, plain, and every form of a wrapper around one of them."""
  trains = {name: functools.partial(by_hand.reference, program, '', '')
            for name, program in programs.PROGRAMS.items()}
  alone = [form for form in forms.FORMS
           if not re.search(' (above|with|over) |^over ', form)]
  for number, form in enumerate(alone):
    program = _SMALL[number % len(_SMALL)]
    trains[f'{form}: {program}'] = functools.partial(
        _under, form, program, behaviors.BEHAVIORS[number % 2])
  return trains


class _StartByFormula(tf1.train.SessionRunHook):
  """Gives what is trained its first values."""

  def begin(self):
    self._variables = tf1.trainable_variables()

  def after_create_session(self, session, coord):
    for number, variable in enumerate(self._variables):
      shape = variable.shape.as_list()
      angles = number + 1.7 * np.arange(np.prod(shape, dtype=int))
      width = 1 / np.sqrt(max(1, shape[0] if shape else 1))
      variable.load(width * np.sin(angles).reshape(shape), session)


def _gan(example, directory):
  rows = datasets.load_digits().train
  return (example.make_estimator(directory, 2),
          example.make_input_fn(rows, _ROWS, False))


def _transformer(example, directory):
  example._NUM_LAYERS = 1
  features, num_words = example.load_features()
  features = {name: rows[:64] for name, rows in features.items()}
  params = {'num_words': num_words, 'learning_rate': 3e-3, 'train_steps': 100}
  return (example.make_estimator(directory, 2, 8, params),
          example.make_input_fn(features, True))


def _wide_and_deep(example, directory):
  params = {'learning_rate': 0.2, 'staleness': 20, 'max_norm': 0.5,
            'num_parts': 2}
  return (tf.estimator.Estimator(example.model_fn, directory, params=params),
          example.make_input_fn(128, False))


_EXAMPLES = {
    'examples/gan.py': _gan,
    'examples/image_classifier.py': _gan,
    'examples/transformer_pretraining.py': _transformer,
    'examples/wide_and_deep.py': _wide_and_deep,
}


def _example(path: str) -> Values:
  """Trains an example program for a few steps."""
  with examples.loader() as load, tempfile.TemporaryDirectory() as directory:
    estimator, input_fn = _EXAMPLES[path](load(path), directory)
    estimator.train(input_fn, hooks=[_StartByFormula()], steps=EXAMPLE_STEPS)
    return {name: estimator.get_variable_value(name)
            for name in estimator.get_variable_names()
            if not re.search(_ONLY_ROUNDING, name)}


def of_examples() -> dict[str, Train]:
  """Every program of examples/."""
  return {path: functools.partial(_example, path) for path in _EXAMPLES}
