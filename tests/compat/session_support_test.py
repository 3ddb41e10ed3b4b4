# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What TPUEstimator makes in any case is made; what is asked for is refused."""

from __future__ import annotations

import pytest

from tfplugin.compat import session_support


def test_the_default_is_made_with_a_warning(caplog):
  session_support.GracefulShutdownHook(
      checkpoint_prefix='x', saver=None,
      on_shutdown_hooks=[session_support.ResetComputation()])
  assert 'no graceful shutdown' in caplog.text


@pytest.mark.parametrize('ask, variable', [
    (session_support.ShutdownLameWorkers,
     'TF_TPU_GRACEFUL_SHUTDOWN_MODE=shutdown_worker'),
    (session_support.ShutdownAllWorkers,
     'TF_TPU_GRACEFUL_SHUTDOWN_MODE=shutdown_all_workers'),
    (lambda: session_support.start_worker_watchdog(None, 5),
     'TF_TPU_WATCHDOG_TIMEOUT=5'),
])
def test_what_an_environment_variable_asks_for_is_refused(ask, variable):
  with pytest.raises(NotImplementedError, match=variable):
    ask()
