# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names of `tf.contrib.training`, and their places in TensorFlow today."""

from tfplugin.contrib import old_names

_BUCKETS = '`tf.data.Dataset.bucket_by_sequence_length`'
_CLIP = '`tf.clip_by_norm` of each gradient, before `apply_gradients`'
_EVALUATE = '`tf.estimator.Estimator.evaluate`'
_ITERATE = '`tf.train.checkpoints_iterator` and ' + _EVALUATE
_LOAD = ('a function of your own as `ps_strategy` of '
         '`tf.compat.v1.train.replica_device_setter`. A resource variable has '
         "the shape `op.get_attr('shape')`; its output has none")
_PARAMS = 'a dataclass, or the `params` of `tf.estimator.Estimator`'
_RESAMPLE = '`tf.data.Dataset.rejection_resample`'
_STATES = '`tf.keras.layers.LSTM` with `stateful=True`'
_TRAIN = '`tf.compat.v1.train.MonitoredTrainingSession`'

OLD = old_names.OldNames(
    'contrib.training',
    moved=old_names.same('tf.compat.v1.train', 'checkpoints_iterator'),
    gone={
        'FeedingQueueRunner': '`tf.data.Dataset.from_generator`',
        'GreedyLoadBalancingStrategy': _LOAD,
        'HParams': _PARAMS,
        'NextQueuedSequenceBatch': _STATES,
        'RandomStrategy': _LOAD,
        'SequenceQueueingStateSaver': _STATES,
        'StopAfterNEvalsHook': f'`steps` of {_EVALUATE}',
        'SummaryAtEndHook': f'{_EVALUATE}, which writes its metrics',
        'add_gradients_summaries':
            '`tf.compat.v1.summary.histogram` of each gradient',
        'batch_sequences_with_states': _STATES,
        'bucket': _BUCKETS,
        'bucket_by_sequence_length': _BUCKETS,
        'byte_size_load_fn': _LOAD,
        'clip_gradient_norms': _CLIP,
        'clip_gradient_norms_fn': _CLIP,
        'create_train_op': '`minimize` of the optimizer, after the ops of '
                           '`tf.compat.v1.GraphKeys.UPDATE_OPS`',
        'evaluate_once': _EVALUATE,
        'evaluate_repeatedly': _ITERATE,
        'get_or_create_eval_step': f'`steps` of {_EVALUATE}',
        'multiply_gradients': 'a product with each gradient, before '
                              '`apply_gradients`',
        'parse_values': _PARAMS,
        'rejection_sample': _RESAMPLE,
        'resample_at_rate': _RESAMPLE,
        'stratified_sample': _RESAMPLE,
        'train': f'{_TRAIN}, or `tf.estimator.Estimator.train`',
        'wait_for_new_checkpoint': '`tf.train.checkpoints_iterator`',
        'weighted_resample': _RESAMPLE,
    })

__all__ = OLD.held
__dir__ = OLD.dir
__getattr__ = OLD.get
