# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The only package of tfplugin that uses private names of TensorFlow.

Each function names the private part that it uses, and says why no public API
serves. There is a module for each part of TensorFlow. Other code imports this
package alone.
"""

from __future__ import annotations

from tfplugin._tf_internals.arithmetic import addends
from tfplugin._tf_internals.arithmetic import alternatives
from tfplugin._tf_internals.arithmetic import factors
from tfplugin._tf_internals.branches import call_of
from tfplugin._tf_internals.branches import conditions_of
from tfplugin._tf_internals.branches import is_in_loop
from tfplugin._tf_internals.branches import is_switch
from tfplugin._tf_internals.branches import outside_of_functions
from tfplugin._tf_internals.branches import Place
from tfplugin._tf_internals.branches import sources_of
from tfplugin._tf_internals.estimators.evaluators import evaluation_of_saves
from tfplugin._tf_internals.estimators.evaluators import evaluator_asks
from tfplugin._tf_internals.estimators.inputs import datasets_inside
from tfplugin._tf_internals.estimators.inputs import inputs_through
from tfplugin._tf_internals.estimators.inputs import untuned_inputs
from tfplugin._tf_internals.estimators.sessions import first_of_ends
from tfplugin._tf_internals.estimators.sessions import mend_early_stopping
from tfplugin._tf_internals.estimators.sessions import saving_without_summaries
from tfplugin._tf_internals.estimators.sessions import (
    servers_and_sessions_through,
)
from tfplugin._tf_internals.estimators.sessions import servers_with
from tfplugin._tf_internals.estimators.sessions import session_config_through
from tfplugin._tf_internals.estimators.sessions import start_at_once
from tfplugin._tf_internals.estimators.sessions import timers_by
from tfplugin._tf_internals.estimators.sessions import user_init_fn
from tfplugin._tf_internals.gradients import gradients_noted
from tfplugin._tf_internals.gradients import gradients_through
from tfplugin._tf_internals.graphs import add_control_inputs
from tfplugin._tf_internals.graphs import branch_of
from tfplugin._tf_internals.graphs import branch_or_loop
from tfplugin._tf_internals.graphs import can_precede
from tfplugin._tf_internals.graphs import colocate_with
from tfplugin._tf_internals.graphs import device_functions
from tfplugin._tf_internals.graphs import is_compiled
from tfplugin._tf_internals.graphs import is_in_branch_or_loop
from tfplugin._tf_internals.graphs import is_in_function
from tfplugin._tf_internals.graphs import is_unplaced_condition
from tfplugin._tf_internals.graphs import is_usable_here
from tfplugin._tf_internals.graphs import move_beside
from tfplugin._tf_internals.graphs import outside_branches
from tfplugin._tf_internals.graphs import private_train_ops
from tfplugin._tf_internals.graphs import private_variables
from tfplugin._tf_internals.graphs import redirect_input
from tfplugin._tf_internals.graphs import repeats_loop_of
from tfplugin._tf_internals.graphs import watch_new_ops
from tfplugin._tf_internals.keras import batch_norm_noted
from tfplugin._tf_internals.keras import is_asked_by_keras_3
from tfplugin._tf_internals.keras import is_keras_inference
from tfplugin._tf_internals.keras import keras_3_module_of
from tfplugin._tf_internals.keras import keras_means_of_losses
from tfplugin._tf_internals.keras import keras_module_of
from tfplugin._tf_internals.keras import layer_names_by_replica
from tfplugin._tf_internals.losses import last_reduction
from tfplugin._tf_internals.losses import losses_as_they_are
from tfplugin._tf_internals.losses import losses_scaled
from tfplugin._tf_internals.losses import MEAN_OF_REPLICAS
from tfplugin._tf_internals.losses import reduction_of
from tfplugin._tf_internals.losses import reported_value
from tfplugin._tf_internals.losses import strategy_divides_loss
from tfplugin._tf_internals.losses import summaries_of_all
from tfplugin._tf_internals.losses import summarized_value
from tfplugin._tf_internals.op_types import accumulates_gradients
from tfplugin._tf_internals.op_types import begins_work
from tfplugin._tf_internals.op_types import fills_table_or_queue
from tfplugin._tf_internals.op_types import identity_gradient
from tfplugin._tf_internals.op_types import is_same_computation
from tfplugin._tf_internals.op_types import is_tpu_sum
from tfplugin._tf_internals.op_types import is_value_of_variable
from tfplugin._tf_internals.op_types import is_variable
from tfplugin._tf_internals.op_types import makes_variable
from tfplugin._tf_internals.op_types import may_vary
from tfplugin._tf_internals.op_types import mean_loss_denominator
from tfplugin._tf_internals.op_types import names_tensor
from tfplugin._tf_internals.op_types import ops_of_bodies
from tfplugin._tf_internals.op_types import origin_of
from tfplugin._tf_internals.op_types import reads_whole_variable
from tfplugin._tf_internals.op_types import takes_lock
from tfplugin._tf_internals.op_types import writes_variable
from tfplugin._tf_internals.optimizers import applications_met
from tfplugin._tf_internals.optimizers import assigns_by_itself
from tfplugin._tf_internals.optimizers import create_optimizer_state
from tfplugin._tf_internals.optimizers import distributed_apply
from tfplugin._tf_internals.optimizers import implements_updates
from tfplugin._tf_internals.optimizers import is_made_by_optimizer
from tfplugin._tf_internals.optimizers import learning_rate_of
from tfplugin._tf_internals.optimizers import met_already
from tfplugin._tf_internals.optimizers import refuses_nothing
from tfplugin._tf_internals.optimizers import wrapped_optimizer
from tfplugin._tf_internals.rows.op_copies import can_be_called_again
from tfplugin._tf_internals.rows.op_copies import can_be_copied
from tfplugin._tf_internals.rows.op_copies import copy_op
from tfplugin._tf_internals.rows.op_copies import is_beside_variable
from tfplugin._tf_internals.rows.op_copies import is_part_of_branch
from tfplugin._tf_internals.rows.op_copies import replace_control_inputs
from tfplugin._tf_internals.rows.op_copies import start_of_branch
from tfplugin._tf_internals.rows.row_ops import aligns_rows
from tfplugin._tf_internals.rows.row_ops import gives_rows
from tfplugin._tf_internals.rows.row_ops import has_moments
from tfplugin._tf_internals.rows.row_ops import has_own_gradient
from tfplugin._tf_internals.rows.row_ops import is_batch_norm
from tfplugin._tf_internals.rows.row_ops import is_reshape
from tfplugin._tf_internals.rows.row_ops import is_size
from tfplugin._tf_internals.rows.row_ops import keeps_rows_apart
from tfplugin._tf_internals.rows.row_ops import reads_only
from tfplugin._tf_internals.rows.row_ops import Rows
from tfplugin._tf_internals.rows.sizes import sizes_as_ops
from tfplugin._tf_internals.saving import list_checkpoint
from tfplugin._tf_internals.saving import make_sliceable
from tfplugin._tf_internals.saving import save_slice_info_of
from tfplugin._tf_internals.saving import saveables_of_copies
from tfplugin._tf_internals.saving import set_save_slice_info
from tfplugin._tf_internals.saving import split_of
from tfplugin._tf_internals.strategies import AggregatingVariable
from tfplugin._tf_internals.strategies import CollectiveAllReduceExtended
from tfplugin._tf_internals.strategies import converted_as_here
from tfplugin._tf_internals.strategies import copy_of_replica_context
from tfplugin._tf_internals.strategies import function_around
from tfplugin._tf_internals.strategies import has_started_server
from tfplugin._tf_internals.strategies import index_in_cluster
from tfplugin._tf_internals.strategies import index_of_copy
from tfplugin._tf_internals.strategies import is_disagreement
from tfplugin._tf_internals.strategies import is_distributed_variable
from tfplugin._tf_internals.strategies import is_late
from tfplugin._tf_internals.strategies import is_mirrored
from tfplugin._tf_internals.strategies import is_moving_average
from tfplugin._tf_internals.strategies import is_variable_assignment
from tfplugin._tf_internals.strategies import is_write
from tfplugin._tf_internals.strategies import make_fetchable
from tfplugin._tf_internals.strategies import MirroredExtended
from tfplugin._tf_internals.strategies import MirroredVariable
from tfplugin._tf_internals.strategies import number_of_tpu_shards
from tfplugin._tf_internals.strategies import ParameterServerStrategyExtended
from tfplugin._tf_internals.strategies import per_replica
from tfplugin._tf_internals.strategies import python_function_of
from tfplugin._tf_internals.strategies import regroup
from tfplugin._tf_internals.strategies import seeds_by_replica
from tfplugin._tf_internals.strategies import select_replica
from tfplugin._tf_internals.strategies import StartedVariable
from tfplugin._tf_internals.strategies import strategy_with_mixins
from tfplugin._tf_internals.strategies import SyncOnReadVariable
from tfplugin._tf_internals.strategies import take_numbered_tasks
from tfplugin._tf_internals.strategies import tpu_function
from tfplugin._tf_internals.strategies import with_empty_batches
from tfplugin._tf_internals.variables import copy_of_variable_store
from tfplugin._tf_internals.variables import graph_element
from tfplugin._tf_internals.variables import initialize_from
from tfplugin._tf_internals.variables import initialize_like
from tfplugin._tf_internals.variables import initialize_with
from tfplugin._tf_internals.variables import is_constant_or_read
from tfplugin._tf_internals.variables import OneCopyExtended
from tfplugin._tf_internals.variables import own_variable
from tfplugin._tf_internals.variables import parts_of
from tfplugin._tf_internals.variables import read_after
from tfplugin._tf_internals.variables import ResourceVariable
from tfplugin._tf_internals.variables import run_with_global_initializers
from tfplugin._tf_internals.variables import use_one_copy
from tfplugin._tf_internals.variables import VARIABLE_STORE_KEY
from tfplugin._tf_internals.writes import brings_value
from tfplugin._tf_internals.writes import initializes
from tfplugin._tf_internals.writes import method_of_write
from tfplugin._tf_internals.writes import ops_of_value
from tfplugin._tf_internals.writes import Write
from tfplugin._tf_internals.writes import writes_of
from tfplugin._tf_internals.writes import writes_through

__all__ = (
    'AggregatingVariable',
    'CollectiveAllReduceExtended',
    'MEAN_OF_REPLICAS',
    'MirroredExtended',
    'MirroredVariable',
    'OneCopyExtended',
    'ParameterServerStrategyExtended',
    'Place',
    'ResourceVariable',
    'StartedVariable',
    'SyncOnReadVariable',
    'VARIABLE_STORE_KEY',
    'Write',
    'accumulates_gradients',
    'add_control_inputs',
    'applications_met',
    'assigns_by_itself',
    'begins_work',
    'branch_of',
    'branch_or_loop',
    'brings_value',
    'call_of',
    'can_precede',
    'colocate_with',
    'conditions_of',
    'converted_as_here',
    'copy_of_replica_context',
    'copy_of_variable_store',
    'create_optimizer_state',
    'datasets_inside',
    'device_functions',
    'distributed_apply',
    'evaluation_of_saves',
    'evaluator_asks',
    'fills_table_or_queue',
    'first_of_ends',
    'gradients_noted',
    'graph_element',
    'identity_gradient',
    'implements_updates',
    'has_started_server',
    'index_in_cluster',
    'index_of_copy',
    'initialize_from',
    'initialize_like',
    'initialize_with',
    'initializes',
    'inputs_through',
    'is_constant_or_read',
    'run_with_global_initializers',
    'is_compiled',
    'is_disagreement',
    'is_late',
    'is_distributed_variable',
    'is_mirrored',
    'is_moving_average',
    'is_in_branch_or_loop',
    'is_in_function',
    'is_in_loop',
    'is_asked_by_keras_3',
    'is_keras_inference',
    'is_made_by_optimizer',
    'is_same_computation',
    'is_switch',
    'is_tpu_sum',
    'is_unplaced_condition',
    'is_usable_here',
    'is_variable',
    'is_variable_assignment',
    'is_write',
    'keras_3_module_of',
    'keras_means_of_losses',
    'last_reduction',
    'losses_as_they_are',
    'losses_scaled',
    'keras_module_of',
    'layer_names_by_replica',
    'learning_rate_of',
    'make_fetchable',
    'list_checkpoint',
    'make_sliceable',
    'makes_variable',
    'mean_loss_denominator',
    'mend_early_stopping',
    'met_already',
    'method_of_write',
    'names_tensor',
    'number_of_tpu_shards',
    'origin_of',
    'move_beside',
    'outside_branches',
    'ops_of_value',
    'own_variable',
    'ops_of_bodies',
    'outside_of_functions',
    'parts_of',
    'per_replica',
    'private_train_ops',
    'private_variables',
    'function_around',
    'python_function_of',
    'read_after',
    'redirect_input',
    'reduction_of',
    'refuses_nothing',
    'regroup',
    'repeats_loop_of',
    'save_slice_info_of',
    'saveables_of_copies',
    'saving_without_summaries',
    'select_replica',
    'set_save_slice_info',
    'seeds_by_replica',
    'sizes_as_ops',
    'split_of',
    'servers_and_sessions_through',
    'servers_with',
    'session_config_through',
    'start_at_once',
    'strategy_divides_loss',
    'summaries_of_all',
    'summarized_value',
    'strategy_with_mixins',
    'take_numbered_tasks',
    'takes_lock',
    'timers_by',
    'tpu_function',
    'untuned_inputs',
    'use_one_copy',
    'watch_new_ops',
    'with_empty_batches',
    'wrapped_optimizer',
    'writes_of',
    'writes_through',
    'writes_variable',
    'can_be_called_again',
    'can_be_copied',
    'copy_op',
    'is_beside_variable',
    'is_value_of_variable',
    'is_part_of_branch',
    'replace_control_inputs',
    'start_of_branch',
    'aligns_rows',
    'has_moments',
    'has_own_gradient',
    'is_reshape',
    'is_batch_norm',
    'is_size',
    'keeps_rows_apart',
    'reads_only',
    'reads_whole_variable',
    'Rows',
    'gradients_through',
    'batch_norm_noted',
    'addends',
    'alternatives',
    'factors',
    'gives_rows',
    'may_vary',
    'user_init_fn',
    'reported_value',
    'sources_of',
)
