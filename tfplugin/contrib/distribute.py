# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names of `tf.contrib.distribute`, and their places in TensorFlow today."""

from tfplugin.contrib import old_names

_V1 = 'tf.compat.v1.distribute'
_RUN = 'a loop of your own around `tf.distribute.Strategy.run`'

OLD = old_names.OldNames(
    'contrib.distribute',
    moved={
        **old_names.same(_V1, '''
            CrossDeviceOps MirroredStrategy OneDeviceStrategy ReplicaContext
            get_loss_reduction get_replica_context get_strategy has_strategy
            in_cross_replica_context'''),
        **old_names.same(f'{_V1}.experimental',
                         'ParameterServerStrategy TPUStrategy'),
        'CollectiveAllReduceStrategy':
            f'{_V1}.experimental.MultiWorkerMirroredStrategy',
        'DistributionStrategy': f'{_V1}.Strategy',
        'get_distribution_strategy': f'{_V1}.get_strategy',
        'has_distribution_strategy': f'{_V1}.has_strategy',
        'initialize_tpu_system':
            'tf.compat.v1.tpu.experimental.initialize_tpu_system',
    },
    notes={
        'CollectiveAllReduceStrategy':
            'no `num_gpus_per_worker`: all GPUs that the process sees',
        'MirroredStrategy': 'no `num_gpus`, `num_gpus_per_worker`, '
                            '`auto_shard_dataset`: list the `devices`; a batch '
                            'of Keras is split over all replicas',
        'ParameterServerStrategy':
            'no `num_gpus_per_worker`: all GPUs that the process sees',
    },
    gone={
        'AllReduceCrossDeviceOps': '`tf.distribute.NcclAllReduce` or '
                                   '`tf.distribute.HierarchicalCopyAllReduce`',
        'DistributeConfig': '`train_distribute` and `eval_distribute` of '
                            '`tf.estimator.RunConfig`',
        'Monitor': _RUN,
        'MultiWorkerAllReduce': '`tf.distribute.MultiWorkerMirroredStrategy`',
        'StandardInputStep': _RUN,
        'StandardSingleLossStep': _RUN,
        'Step': _RUN,
        'UpdateContext': '`tf.distribute.StrategyExtended.update`',
        'get_cross_replica_context':
            '`tf.distribute.get_strategy` where '
            '`tf.distribute.in_cross_replica_context` is True',
        'require_replica_context':
            '`tf.distribute.get_replica_context`, which is None elsewhere',
        'run_standard_tensorflow_server':
            '`tf.distribute.Server`; `tf.estimator.train_and_evaluate` starts '
            'its own',
    })

__all__ = OLD.held
__dir__ = OLD.dir
__getattr__ = OLD.get
