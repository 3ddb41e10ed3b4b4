# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Model_fns of public kinds below decorators: TRAIN, EVAL, PREDICT, an export.

The trained values are those of the plain model_fn on one device, with numpy's
rule between its steps. A plain Estimator then evaluates and predicts the same.
"""

from __future__ import annotations

import functools
import re
import zlib

import numpy as np
import pytest
import tensorflow as tf

from tests.programs import by_hand
from tests.programs import forms
from tests.programs import programs
from tests.programs.kinds import model_fns_of_draws
from tests.programs.kinds import model_fns_of_rows
from tests.programs.kinds import serving
from tfplugin.testing import devices

tf1 = tf.compat.v1

pytestmark = pytest.mark.filterwarnings('ignore:.*deprecated')

FORMS = ['`drop_stale_gradients`', '`clip_variables`', '`elastic_average`',
         '`replicate_model_fn`', 'elastic above clip', 'replicate above drop']
_TOLERANCE = 2e-5
_SESSION = devices.session_config(4)
# What is not trained, and begins at random.
_UNTRAINED = re.compile(r'^(codes|queue|sums|teacher/\S*|mean/\w*)$')
# Model_fns that write trained variables themselves, beside the optimizer.
_WRITING = (model_fns_of_rows.queue_of_keys, model_fns_of_rows.triples,
            model_fns_of_draws.first_batch, model_fns_of_draws.two_views,
            model_fns_of_draws.values)


def _by_name(next_creator, **kwargs):
  """Variables start with values that their names tell, and not at random."""
  name = kwargs.get('name') or ''
  if callable(kwargs['initial_value']) and (
      kwargs.get('trainable') or _UNTRAINED.search(name)):
    shape = kwargs['initial_value']().shape.as_list()
    first = zlib.crc32(name.encode()) % 97
    values = 0.6 * np.sin(first + np.arange(np.prod(shape))).reshape(shape)
    kwargs['initial_value'] = lambda: tf.constant(values, tf.float32)
  return next_creator(**kwargs)


def _program(model_fn):

  @functools.wraps(model_fn)
  def started(features, labels, mode):
    tf1.set_random_seed(1)  # As Estimator does.
    with tf1.variable_creator_scope(_by_name):
      return model_fn(features, labels, mode)

  return by_hand.Program(
      started, lambda rows: tf.data.Dataset.from_tensors(
          programs.MODEL_FNS[model_fn]).repeat(),
      state='Adagrad', rules={'kernel$': 0}, max_norm=0.7,
      tolerance=_TOLERANCE)


def _outputs(model_fn, batch, model_dir, name):
  """Returns metrics, predictions and answers by the newest checkpoint."""
  features, _ = batch
  estimator = tf1.estimator.Estimator(
      model_fn, str(model_dir), tf1.estimator.RunConfig(
          session_config=_SESSION))
  metrics = estimator.evaluate(
      lambda: tf.data.Dataset.from_tensors(batch), name=name)
  rows = list(estimator.predict(
      lambda: tf.data.Dataset.from_tensors(features)))
  path = estimator.export_saved_model(
      str(model_dir / name), serving.receiver_of(features)).decode()
  return {**metrics, **{f'predicted {key}': np.stack([row[key] for row in rows])
                        for key in rows[0]},
          **{f'served {key}': value
             for key, value in serving.served(
                 path, features, _SESSION).items()}}


@pytest.mark.sampled(6)
@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('model_fn', programs.SERVED_MODEL_FNS,
                         ids=lambda model_fn: model_fn.__name__)
def test_all_modes(behavior, tmp_path, model_fn, form):
  del behavior
  program, form = _program(model_fn), forms.FORMS[form]
  forms.assert_close(
      forms.train(program, form, tmp_path),
      by_hand.reference(program, *form.reference_of(program)), _TOLERANCE)
  batch = programs.SERVED_MODEL_FNS[model_fn]
  found, expected = (
      _outputs(each, batch, tmp_path, name) for each, name in (
          (form.decorate(program), 'decorated'), (program.model_fn, 'plain')))
  assert found.keys() == expected.keys()
  for key, value in expected.items():
    np.testing.assert_allclose(
        found[key], value, _TOLERANCE, _TOLERANCE, err_msg=key)


@pytest.mark.sampled(8)
@pytest.mark.parametrize('model_fn', [
    model_fn for model_fn in programs.MODEL_FNS
    if model_fn not in programs.SERVED_MODEL_FNS],
                         ids=lambda model_fn: model_fn.__name__)
def test_nothing_stale_trains_as_without(behavior, tmp_path, model_fn):
  del behavior
  program, form = _program(model_fn), forms.FORMS[FORMS[0]]
  if model_fn in _WRITING:
    with pytest.raises(ValueError, match='outside of the optimizers'):
      forms.train(program, form, tmp_path)
    return
  forms.assert_close(
      forms.train(program, form, tmp_path),
      by_hand.reference(program, '', ''), _TOLERANCE)
