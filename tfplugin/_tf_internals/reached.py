# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""List of the private names of TensorFlow that this project uses and overrides.

`moved()` returns the names that the installed TensorFlow lacks; it makes no
graph. This file imports no other module of the package. It can be run by its
path when another TensorFlow breaks the others. A test keeps it complete. The
types of ops and the texts of errors are tested beside the functions that use
them.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterable
from collections.abc import Iterator

import tensorflow as tf

_DISTRIBUTE = 'tensorflow.python.distribute'
_ESTIMATOR = 'tensorflow_estimator.python.estimator'
_HAS_ESTIMATOR = tf.__version__.startswith('2.15.')
# The Keras that Estimator needs.
_KERAS = 'keras' if _HAS_ESTIMATOR else 'tf_keras'
_VARIABLES = 'tensorflow.python.ops.resource_variable_ops'

# Module or class: its members that are imported or used.
NAMES = {
    f'{_DISTRIBUTE}.collective_all_reduce_strategy':
        'CollectiveAllReduceExtended',
    f'{_DISTRIBUTE}.collective_all_reduce_strategy.CollectiveAllReduceExtended':
        '_id_in_cluster _num_replicas_in_sync _std_server_started '
        '_use_merge_call',
    f'{_DISTRIBUTE}.distribute_lib.ReplicaContextBase': '_thread_context',
    f'{_DISTRIBUTE}.distribute_lib.StrategyBase': '_extended',
    f'{_DISTRIBUTE}.distribute_lib.StrategyExtendedV2':
        '_container_strategy _container_strategy_weakref _local_results',
    f'{_DISTRIBUTE}.distribute_utils':
        'get_loss_reduction is_distributed_variable is_mirrored regroup '
        'select_replica',
    f'{_DISTRIBUTE}.input_lib': '_is_statically_shaped',
    f'{_DISTRIBUTE}.input_lib.DistributedIteratorBase':
        '_enable_get_next_as_optional _iterators',
    f'{_DISTRIBUTE}.input_lib._SingleWorkerDatasetIteratorBase':
        '_element_spec',
    f'{_DISTRIBUTE}.mirrored_strategy': 'MirroredExtended',
    f'{_DISTRIBUTE}.mirrored_strategy.MirroredExtended':
        '_devices _num_replicas_in_sync _use_merge_call',
    f'{_DISTRIBUTE}.multi_worker_util': 'id_in_cluster task_count',
    f'{_DISTRIBUTE}.parameter_server_strategy':
        'ParameterServerStrategyExtended',
    f'{_DISTRIBUTE}.parameter_server_strategy.ParameterServerStrategyExtended':
        '_cluster_spec _compute_devices _create_var_creator '
        '_in_multi_worker_mode _num_replicas_in_sync _parameter_devices '
        '_task_id _task_type _variable_device _worker_device',
    f'{_DISTRIBUTE}.ps_values': 'AggregatingVariable',
    f'{_DISTRIBUTE}.sharded_variable': 'ShardedVariableMixin',
    f'{_DISTRIBUTE}.sharded_variable.ShardedVariableMixin':
        '_sharded_container',
    f'{_DISTRIBUTE}.summary_op_util': 'skip_summary',
    f'{_DISTRIBUTE}.values':
        'DistributedVarOp MirroredVariable PerReplica SyncOnReadVariable',
    f'{_DISTRIBUTE}.values.DistributedVariable':
        '_get _get_on_device_or_primary _initializer_op _primary _update',
    f'{_DISTRIBUTE}.values.DistributedValues': '_primary',
    f'{_KERAS}.layers.BatchNormalization':
        '_calculate_mean_and_var _get_training_value',
    f'{_KERAS}.src.backend': 'get_default_graph_uid_map',
    f'{_KERAS}.src.legacy_tf_layers.base.Layer':
        '_keras_style',
    f'{_KERAS}.src.mixed_precision.autocast_variable.AutoCastVariable':
        '_variable',
    f'{_KERAS}.losses.Loss': '_get_reduction',
    f'{_KERAS}.src.utils.losses_utils': '_safe_mean',
    f'{_KERAS}.optimizers.legacy.Optimizer': '_compute_gradients',
    'tensorflow.python.autograph.core.ag_ctx': 'control_status_ctx',
    'tensorflow.python.autograph.impl.api': 'do_not_convert tf_convert',
    'tensorflow.python.checkpoint.checkpoint_management':
        'update_checkpoint_state_internal',
    'tensorflow.python.data.ops.multi_device_iterator_ops':
        '_create_device_dataset',
    'tensorflow.python.eager.polymorphic_function.polymorphic_function'
    '.Function': '_clone',
    'tensorflow.python.framework.auto_control_deps_utils':
        'READ_ONLY_RESOURCE_INPUTS_ATTR',
    'tensorflow.python.framework.func_graph': 'FuncGraph',
    'tensorflow.python.framework.random_seed': 'get_seed',
    'tensorflow.python.framework.ops': '_as_graph_element colocate_with',
    'tensorflow.python.framework.ops.Graph':
        '_collections _create_op_helper _current_control_dependencies '
        '_device_functions_outer_to_inner _get_control_flow_context '
        '_get_function _last_loss_reduction _set_control_flow_context',
    'tensorflow.python.framework.ops.Operation':
        '_add_control_inputs _get_control_flow_context '
        '_remove_all_control_inputs _set_attr _set_device _update_input',
    'tensorflow.python.framework.dtypes.DType': '_is_ref_dtype',
    'tensorflow.python.ops.control_flow_util': 'GraphOrParentsInXlaContext',
    'tensorflow.python.ops.control_flow_v2_func_graphs':
        'CondBranchFuncGraph WhileBodyFuncGraph',
    'tensorflow.python.ops.array_ops':
        'array_like_impl ones_like_impl shape_internal size_internal',
    'tensorflow.python.ops.custom_gradient': 'get_variable_by_name',
    'tensorflow.python.ops.gradients_util': '_GradientsHelper',
    'tensorflow.python.ops.losses.losses_impl': '_safe_mean',
    'tensorflow.python.ops.handle_data_util': 'get_resource_handle_data',
    _VARIABLES: 'ResourceVariable',
    f'{_VARIABLES}.BaseResourceVariable':
        '_initial_value _initializer_op _lazy_read _save_slice_info',
    f'{_VARIABLES}.ResourceVariable': '_graph_element',
    'tensorflow.python.ops.variable_scope':
        '_LazyEvalTensor _VARSTORE_KEY _VariableStore '
        '_get_default_variable_store',
    'tensorflow.python.ops.variable_scope._VariableStore':
        '_partitioned_vars _vars',
    'tensorflow.python.ops.variables.Variable':
        '_gather_saveables_for_checkpoint _get_save_slice_info '
        '_set_save_slice_info',
    'tensorflow.python.tpu.tpu_function':
        'get_tpu_context tpu_shard_context',
    'tensorflow.python.tpu.tpu_optimizer.CrossShardOptimizer':
        '_group_assignment _opt _reduction',
    'tensorflow.python.trackable.base': 'VARIABLE_VALUE_KEY',
    'tensorflow.python.trackable.base.Trackable': '_track_trackable',
    'tensorflow.python.training.adam.AdamOptimizer': '_lr',
    'tensorflow.python.training.gradient_descent.GradientDescentOptimizer':
        '_learning_rate',
    'tensorflow.python.training.monitored_session.Scaffold': '_user_init_fn',
    'tensorflow.python.training.optimizer.Optimizer':
        '_apply_dense _create_slots _distributed_apply '
        '_resource_apply_dense _scale_loss _use_locking',
    'tensorflow.python.training.saver.Saver':
        '_MaybeDeleteOldCheckpoints _RecordLastCheckpoint '
        '_save_relative_paths',
    'tensorflow.python.training.saving.saveable_object':
        'SaveSpec SaveableObject',
    'tensorflow.python.training.session_manager': 'session',
    f'{_ESTIMATOR}.estimator.EstimatorV2': '_call_input_fn _config',
    f'{_ESTIMATOR}.run_config.RunConfig':
        '_experimental_max_worker_delay_secs _is_chief _train_distribute',
    f'{_ESTIMATOR}.tpu.tpu_estimator.TPUEstimator': '_is_input_fn_invoked',
    f'{_ESTIMATOR}.training':
        '_ContinuousEvalListener _NewCheckpointListenerForEvaluate '
        '_TrainingExecutor time',
    f'{_ESTIMATOR}.training._TrainingExecutor': '_Evaluator',
    f'{_ESTIMATOR}.training._TrainingExecutor._Evaluator': '_estimator',
}

# The same for `tfplugin/compat/`, which TensorFlow 2.15 does not need.
NAMES_OF_COMPAT = {
    f'{_DISTRIBUTE}.distribute_coordinator':
        'CoordinatorMode run_distribute_coordinator',
    f'{_DISTRIBUTE}.distribute_coordinator_context':
        'get_current_worker_context',
    f'{_DISTRIBUTE}.multi_worker_util': 'normalize_cluster_spec',
    'tensorflow.python.autograph.core.config': 'CONVERSION_RULES DoNotConvert',
    'tensorflow.python.util.lazy_loader': 'KerasLazyLoader',
    'tensorflow.python.util.lazy_loader.KerasLazyLoader':
        '_initialize _tfll_initialized _tfll_keras_version',
    'tensorflow.python.util.tf_export':
        'API_ATTRS API_ATTRS_V1 SUBPACKAGE_NAMESPACES TENSORFLOW_API_NAME',
    f'{_ESTIMATOR}.estimator.Estimator': '_call_model_fn _config',
    f'{_ESTIMATOR}.keras_lib': '_assert_valid_model',
    f'{_ESTIMATOR}.run_config.RunConfig':
        '_cluster_spec _evaluation_master _global_id_in_cluster '
        '_init_distributed_setting_from_environment_var _is_chief _master '
        '_maybe_overwrite_session_config_for_distributed_training '
        '_num_ps_replicas _num_worker_replicas _service _task_id _task_type '
        '_train_distribute',
    f'{_ESTIMATOR}.training._TrainingExecutor': '_start_continuous_evaluation',
}

# Class of TensorFlow: the methods that a class of this project overrides, with
# their parameters; '' for an attribute.
OVERRIDES = {
    f'{_DISTRIBUTE}.collective_all_reduce_strategy.CollectiveAllReduceExtended':
        {
            '_initialize_local_devices': 'self cluster_resolver worker_device',
            '_make_input_fn_iterator': 'self input_fn replication_mode',
            '_reduce_to': 'self reduce_op value destinations options',
        },
    f'{_DISTRIBUTE}.distribute_lib.StrategyBase':
        {'_scale_loss_for_estimator': ''},
    f'{_DISTRIBUTE}.distribute_lib.StrategyExtendedV2':
        {'_allow_variable_partition': 'self'},
    f'{_DISTRIBUTE}.mirrored_strategy.MirroredExtended': {
        '_batch_reduce_to': 'self reduce_op value_destination_pairs options',
        '_call_for_each_replica': 'self fn args kwargs',
        '_create_variable': 'self next_creator kwargs',
        '_initialize_strategy': 'self devices',
        '_make_input_fn_iterator': 'self input_fn replication_mode',
        '_reduce_to': 'self reduce_op value destinations options',
        '_update': 'self var fn args kwargs group',
        '_update_non_slot': 'self colocate_with fn args kwargs group',
        '_use_merge_call': 'self',
        '_validate_colocate_with_variable': 'self colocate_with_variable',
    },
    f'{_DISTRIBUTE}.mirrored_strategy.MirroredStrategy':
        {'_collective_key_base': ''},
    f'{_DISTRIBUTE}.parameter_server_strategy.ParameterServerStrategyExtended':
        {
            '_batch_reduce_to':
                'self reduce_op value_destination_pairs options',
            '_call_for_each_replica': 'self fn args kwargs',
            '_configure': 'self session_config cluster_spec task_type task_id',
            '_create_var_creator': 'self next_creator kwargs',
            '_create_variable': 'self next_creator kwargs',
            '_make_input_fn_iterator': 'self input_fn replication_mode',
            '_num_replicas_in_sync': '',
            '_reduce_to': 'self reduce_op value destinations options',
            '_update': 'self var fn args kwargs group',
            '_validate_colocate_with_variable': 'self colocate_with_variable',
        },
    f'{_DISTRIBUTE}.values.DistributedVariable': {
        '_get_replica': 'self replica_id',
        '_initializer_op': '',
        '_set_save_slice_info': 'self save_slice_info',
        '_update_cross_replica': 'self update_fn value kwargs',
    },
    f'{_DISTRIBUTE}.values.MirroredVariable': {
        '_gather_saveables_for_checkpoint': 'self',
        '_get_cross_replica': 'self',
        '_update_replica': 'self update_fn value kwargs',
    },
    f'{_DISTRIBUTE}.values.SyncOnReadVariable': {'_get_cross_replica': 'self'},
    f'{_VARIABLES}.BaseResourceVariable': {'_initializer_op': ''},
    f'{_VARIABLES}.ResourceVariable': {'_initializer_op': ''},
    'tensorflow.python.ops.variables.Variable': {
        '_gather_saveables_for_checkpoint': 'self',
        '_set_save_slice_info': 'self save_slice_info',
    },
    'tensorflow.python.training.optimizer.Optimizer':
        {'_create_slots': 'self var_list'},
    f'{_ESTIMATOR}.estimator.Estimator':
        {'_assert_members_are_not_overridden': 'self'},
    f'{_ESTIMATOR}.tpu.tpu_estimator.TPUEstimator': {
        '_augment_model_fn': 'self model_fn batch_axis',
        '_call_input_fn': 'self input_fn mode input_context',
    },
}


def moved() -> list[str]:
  """Returns a line for each name that is missing or has another signature.

  Empty with the TensorFlow that this project is made for.
  """
  lines = []
  compat = {} if _HAS_ESTIMATOR else NAMES_OF_COMPAT
  for owner, names in (*NAMES.items(), *compat.items()):
    lines += _missing(owner, names.split())
  for owner, methods in OVERRIDES.items():
    missing = _missing(owner, methods)
    lines += missing or [
        f'{owner}.{name} takes ({found}), not ({wanted})'
        for name, wanted in methods.items()
        if (found := parameters(pkgutil.resolve_name(owner), name)) != wanted]
  return lines


def parameters(owner: type, name: str) -> str:
  """Returns the names of a method's parameters; '' for another attribute."""
  method = getattr(owner, name, None)
  return ' '.join(inspect.signature(method).parameters) if inspect.isfunction(
      method) else ''


def knows(owner: object, name: str) -> bool:
  """Returns whether a module or class has `name`, or its methods mention it.

  Attributes of instances are known only from the code of the methods.
  """
  return hasattr(owner, name) or any(
      name in function.__code__.co_names
      for base in getattr(owner, '__mro__', ()) for function in functions(base))


def functions(owner: type) -> Iterator[object]:
  """Yields the functions of a class, also of its properties and decorators."""
  for member in vars(owner).values():
    for part in ((member.fget, member.fset) if isinstance(member, property)
                 else (member,)):
      function = inspect.unwrap(getattr(part, '__func__', part))
      if inspect.isfunction(function):
        yield function


def _missing(owner: str, names: Iterable[str]) -> list[str]:
  """Returns a line for each of `names` that `owner` lacks."""
  try:
    found = pkgutil.resolve_name(owner)
  except (AttributeError, ImportError):
    return [f'{owner} is gone']
  return [f'{owner}.{name} is gone' for name in names if not knows(found, name)]
