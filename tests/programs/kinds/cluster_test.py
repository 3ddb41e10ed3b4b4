# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Model_fns of public kinds on a cluster: chief, worker, ps and evaluator.

Each step is in the checkpoint, and the export predicts as a plain Estimator
does from the same checkpoint. A hook has seen a gradient for each variable in
each step.
"""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tests.distributed import clusters
from tests.programs.kinds import cluster_program
from tests.programs.kinds import serving

tf1 = tf.compat.v1

pytestmark = [pytest.mark.distributed, pytest.mark.usefixtures('forking'),
              pytest.mark.timeout(180),
              pytest.mark.filterwarnings('ignore:.*deprecated')]

_PROGRAM = pathlib.Path(cluster_program.__file__)


@pytest.mark.sampled(6)
@pytest.mark.parametrize('form', cluster_program.DECORATORS)
@pytest.mark.parametrize('kind', ['recomputed', 'sessions'])
def test_trains_and_exports(behavior, tmp_path, kind, form):
  clusters.run(
      tmp_path, clusters.configs_of('chief-0', 'worker-0', 'ps-0',
                                    'evaluator-0'),
      program=(str(_PROGRAM),), behavior=behavior, kind=kind, form=form,
      batches=20)
  clusters.check(tmp_path, 40)
  model_fn, (features, _) = cluster_program.model_fn_of(kind)
  rows = list(tf1.estimator.Estimator(
      model_fn, str(tmp_path / 'model')).predict(
          lambda: tf.data.Dataset.from_tensors(features)))
  exported, = (tmp_path / 'model/export/last').iterdir()
  for key, value in serving.served(
      str(exported), features, None).items():
    np.testing.assert_allclose(
        value, [row[key] for row in rows], rtol=1e-5, atol=1e-6)
