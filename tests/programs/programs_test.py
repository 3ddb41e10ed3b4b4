# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every program under every form: its own numbers, or refused by name."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from tests.programs import bert
from tests.programs import forms
from tests.programs import gan
from tests.programs import keras_losses
from tests.programs import loss_scale

PROGRAMS = {
    'BERT': bert.PROGRAM,
    'Keras losses': keras_losses.PROGRAM,
    'dynamic loss scale': loss_scale.PROGRAM,
    'GAN, one optimizer': gan.PROGRAM,
}


@pytest.fixture(scope='module', name='reference')
def fixture_reference():
  """Computes each once; both behaviours have the same numbers."""
  return functools.cache(
      lambda program, name: forms.REFERENCES[name](PROGRAMS[program]))


@pytest.mark.parametrize('program', PROGRAMS)
def test_rules_change_the_numbers(reference, program):
  """Otherwise a form that does nothing would pass."""
  names = [name for name in forms.REFERENCES if PROGRAMS[program].halves or
           not name.startswith('shards')]
  values = [np.concatenate([np.ravel(value) for _, value in sorted(
      reference(program, name).items())]) for name in names]
  for number, value in enumerate(values):
    for other in values[:number]:
      assert np.abs(value - other).max() > 1e-3


@pytest.mark.parametrize('form', forms.FORMS)
@pytest.mark.parametrize('program', PROGRAMS)
def test_program(behavior, tmp_path, reference, program, form):
  refused = PROGRAMS[program].refused.get(form)
  if refused:
    with pytest.raises((RuntimeError, TypeError, ValueError), match=refused):
      forms.train(PROGRAMS[program], forms.FORMS[form], tmp_path)
    return
  forms.assert_close(
      forms.train(PROGRAMS[program], forms.FORMS[form], tmp_path),
      reference(program, forms.FORMS[form].reference))
