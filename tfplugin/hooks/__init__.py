# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Session hooks for training in clusters."""

from tfplugin.hooks.checkpoint_guard_hook import CheckpointGuardHook
from tfplugin.hooks.contact_hooks import KeepContactHook
from tfplugin.hooks.contact_hooks import WaitForChiefHook
from tfplugin.hooks.elastic_hooks import ElasticAverageHook
from tfplugin.hooks.elastic_hooks import ElasticCheckpointHook
from tfplugin.hooks.elastic_hooks import ElasticDistanceHook
from tfplugin.hooks.events_hook import EventsHook
from tfplugin.hooks.shutdown.shutdown_hooks import RefusedStepHook
from tfplugin.hooks.shutdown.shutdown_hooks import ReportFinishedHook
from tfplugin.hooks.shutdown.shutdown_hooks import StopInOrderHook
from tfplugin.hooks.shutdown.waits import run_parameter_server
from tfplugin.hooks.shutdown.waits import WaitForWorkersHook
from tfplugin.hooks.summary_hooks import ClippingSummaryHook
from tfplugin.hooks.summary_hooks import StalenessSummaryHook
from tfplugin.hooks.tensorboard_hook import TensorBoardHook

__all__ = (
    'CheckpointGuardHook',
    'ClippingSummaryHook',
    'ElasticAverageHook',
    'ElasticCheckpointHook',
    'ElasticDistanceHook',
    'EventsHook',
    'KeepContactHook',
    'RefusedStepHook',
    'ReportFinishedHook',
    'StalenessSummaryHook',
    'StopInOrderHook',
    'TensorBoardHook',
    'WaitForChiefHook',
    'WaitForWorkersHook',
    'run_parameter_server',
)
