# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names of `tf.contrib.estimator`: ours, and TensorFlow's new places."""

from tfplugin.contrib import old_names
from tfplugin.estimator.replicate import replicate_model_fn
from tfplugin.optimizers.tower import TowerOptimizer

_ESTIMATOR = 'tf.estimator.Estimator'
_RAW = 'build_raw_supervised_input_receiver_fn'
_TREES = 'the package `tensorflow_decision_forests`'
_OPTIMIZER = '`optimizer` is one of Keras; another one goes into `train_op_fn`'
_ORDER = ('`label_dimension` comes before `weight_column`: pass them by name; '
          + _OPTIMIZER)
_RNN = ('`num_units` is `units`, `optimizer` one of Keras; no '
        '`input_layer_partitioner`; pass all by name')

_HEADS = {
    'binary_classification_head': 'tf.estimator.BinaryClassHead',
    'logistic_regression_head': 'tf.estimator.LogisticRegressionHead',
    'multi_class_head': 'tf.estimator.MultiClassHead',
    'multi_head': 'tf.estimator.MultiHead',
    'multi_label_head': 'tf.estimator.MultiLabelHead',
    'poisson_regression_head': 'tf.estimator.PoissonRegressionHead',
    'regression_head': 'tf.estimator.RegressionHead',
}

OLD = old_names.OldNames(
    'contrib.estimator',
    ours=(TowerOptimizer, replicate_model_fn),
    moved={
        **_HEADS,
        **old_names.same('tf.estimator.experimental',
                         'RNNClassifier RNNEstimator'),
        **old_names.same('tf.compat.v1.estimator', 'add_metrics'),
        **old_names.same('tf.compat.v1.estimator.experimental', f'''
            {_RAW} call_logit_fn dnn_logit_fn_builder
            linear_logit_fn_builder'''),
    },
    notes={
        **dict.fromkeys(_HEADS, _OPTIMIZER),
        'RNNClassifier': _RNN,
        'RNNEstimator': _RNN,
        'poisson_regression_head': _ORDER,
        'regression_head': _ORDER,
    },
    gone={
        'DNNClassifierWithLayerAnnotations':
            '`tf.compat.v1.estimator.DNNClassifier`',
        'DNNRegressorWithLayerAnnotations':
            '`tf.compat.v1.estimator.DNNRegressor`',
        'SavedModelEstimator': 'a model_fn around `tf.saved_model.load`',
        'boosted_trees_classifier_train_in_memory': _TREES,
        'boosted_trees_regressor_train_in_memory': _TREES,
        'build_supervised_input_receiver_fn_from_input_fn':
            f'`tf.compat.v1.estimator.experimental.{_RAW}` with the '
            'result of the input_fn',
        'clip_gradients_by_norm':
            '`tf.clip_by_norm` of each gradient, before `apply_gradients`',
        'export_all_saved_models':
            f'`{_ESTIMATOR}.experimental_export_all_saved_models`',
        'export_saved_model_for_mode':
            f'`{_ESTIMATOR}.export_saved_model` with `experimental_mode`',
        'forward_features': 'the features among the `predictions` of the '
                            'model_fn\'s `tf.estimator.EstimatorSpec`',
    })

__all__ = OLD.held
__dir__ = OLD.dir
__getattr__ = OLD.get
