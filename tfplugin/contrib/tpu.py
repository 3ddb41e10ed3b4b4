# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names of `tf.contrib.tpu`: ours, and TensorFlow's new places."""

from tfplugin.contrib import old_names
from tfplugin.distribute.shards.current_shards import cross_replica_sum
from tfplugin.optimizers.cross_shard import CrossShardOptimizer

_V1 = 'tf.compat.v1.tpu'
_STRATEGY = 'tf.distribute.TPUStrategy'
_KEYWORDS = 'arguments by name only'
_FEEDS = {
    'infeed_dequeue': 'tf.raw_ops.InfeedDequeue',
    'infeed_dequeue_tuple': 'tf.raw_ops.InfeedDequeueTuple',
    'infeed_enqueue': 'tf.raw_ops.InfeedEnqueue',
    'infeed_enqueue_tuple': 'tf.raw_ops.InfeedEnqueueTuple',
    'outfeed_dequeue': 'tf.raw_ops.OutfeedDequeue',
    'outfeed_dequeue_tuple': 'tf.raw_ops.OutfeedDequeueTuple',
    'outfeed_enqueue': 'tf.raw_ops.OutfeedEnqueue',
    'outfeed_enqueue_tuple': 'tf.raw_ops.OutfeedEnqueueTuple',
}

OLD = old_names.OldNames(
    'contrib.tpu',
    ours=(CrossShardOptimizer, cross_replica_sum),
    moved={
        **old_names.same(_V1, '''
            batch_parallel bfloat16_scope core initialize_system
            outside_compilation replicate rewrite shard shutdown_system'''),
        **old_names.same(f'{_V1}.experimental', 'DeviceAssignment Topology'),
        **old_names.same('tf.compat.v1.estimator.tpu', '''
            InputPipelineConfig RunConfig TPUConfig TPUEstimator
            TPUEstimatorSpec'''),
        **_FEEDS,
        'device_assignment': f'{_V1}.experimental.DeviceAssignment.build',
    },
    notes={
        **dict.fromkeys(_FEEDS, _KEYWORDS),
        'TPUEstimator': 'off TPU, `ShardedTPUEstimator` of tfplugin trains '
                        'its shards',
    },
    gone={
        'AsyncCheckpointSaverHook': '`tf.estimator.CheckpointSaverHook`',
        'InfeedQueue': '`tf.compat.v1.estimator.tpu.TPUEstimator`, which feeds '
                       'the TPU itself',
        'TPUDistributionStrategy': f'`{_STRATEGY}`',
        'export_estimator_savedmodel':
            '`tf.compat.v1.estimator.tpu.TPUEstimator.export_saved_model`',
        'keras_to_tpu_model':
            f'a Keras model built in the scope of `{_STRATEGY}`',
        'profiler': '`tf.profiler.experimental`',
        'repeat': '`tf.range` in a loop of a `tf.function`',
        'while_loop': '`tf.while_loop`',
    })

__all__ = OLD.held
__dir__ = OLD.dir
__getattr__ = OLD.get
