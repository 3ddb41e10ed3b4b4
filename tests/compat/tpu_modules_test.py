# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""TPU embeddings and the shutdown of workers are refused without TensorFlow's.

What TPUEstimator makes in any case is made.
"""

from __future__ import annotations

import pytest

from tfplugin.compat import tpu_modules


@pytest.mark.parametrize('name, remedy', [
    ('AdagradParameters', 'embedding_column'),
    ('TPUEmbedding', 'embedding_column'),
    ('create_dummy_table_variables', 'embedding_column'),
    ('ShutdownLameWorkers', 'TF_TPU_GRACEFUL_SHUTDOWN_MODE'),
    ('ShutdownAllWorkers', 'TF_TPU_GRACEFUL_SHUTDOWN_MODE'),
    ('start_worker_watchdog', 'TF_TPU_WATCHDOG_TIMEOUT')])
def test_names_are_there_and_refuse_to_be_called(name, remedy):
  refused = getattr(tpu_modules, name)
  assert getattr(tpu_modules, name) is refused
  assert not isinstance(3, refused)
  with pytest.raises(NotImplementedError, match=f'no .{name}. .*{remedy}'):
    refused(0.1, name='x')


def test_attributes_of_python_are_not_made_up():
  assert not hasattr(tpu_modules, '__path__')


def test_the_default_is_made_with_a_warning(caplog):
  tpu_modules.GracefulShutdownHook(
      checkpoint_prefix='x', saver=None,
      on_shutdown_hooks=[tpu_modules.ResetComputation()])
  assert 'no graceful shutdown' in caplog.text
