# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names of `tf.contrib.opt`: our wrappers, and replacements for the others."""

from tfplugin.contrib import old_names
from tfplugin.optimizers import elastic_custom_getter
from tfplugin.optimizers.drop_stale_gradient import DropStaleGradientOptimizer
from tfplugin.optimizers.elastic_average import ElasticAverageOptimizer
from tfplugin.optimizers.elastic_custom_getter import ElasticAverageCustomGetter
from tfplugin.optimizers.variable_clipping import VariableClippingOptimizer

# Programs may look for variables by these names.
GLOBAL_VARIABLE_NAME = elastic_custom_getter.GLOBAL_CENTER
LOCAL_VARIABLE_NAME = 'local_center_variable'

_ADAM = '`tf.compat.v1.train.AdamOptimizer`'
_ELASTIC = '`ElasticAverageOptimizer`, the nearest to it'
_OWN = 'a subclass of your own of `tf.compat.v1.train.Optimizer`'
_SCIPY = 'SciPy with `tf.compat.v1.gradients`'
_LAZY_ADAM = (f'a subclass of {_ADAM} that updates only the rows of the batch, '
              f'in `_apply_sparse_shared`. {_ADAM} itself updates every row in '
              'each step, and trains an embedding differently')

OLD = old_names.OldNames(
    'contrib.opt',
    ours=(DropStaleGradientOptimizer, ElasticAverageCustomGetter,
          ElasticAverageOptimizer, VariableClippingOptimizer),
    gone={
        'AGNCustomGetter': _ELASTIC.replace('Optimizer', 'CustomGetter'),
        'AGNOptimizer': _ELASTIC,
        'AdaMaxOptimizer': '`tf.keras.optimizers.Adamax`, in a Keras model',
        'AdamGSOptimizer': f'{_ADAM}, which counts its own steps',
        'AdamWOptimizer': '`tf.keras.optimizers.AdamW`, in a Keras model',
        'AddSignOptimizer': _OWN,
        'DecoupledWeightDecayExtension': '`tf.keras.optimizers.AdamW`, in a '
                                         'Keras model',
        'ExternalOptimizerInterface': _SCIPY,
        'GGTOptimizer': _OWN,
        'LARSOptimizer': _OWN,
        'LazyAdamGSOptimizer': _LAZY_ADAM,
        'LazyAdamOptimizer': _LAZY_ADAM,
        'ModelAverageCustomGetter':
            _ELASTIC.replace('Optimizer', 'CustomGetter'),
        'ModelAverageOptimizer': _ELASTIC,
        'MomentumWOptimizer': '`tf.keras.optimizers.SGD` with `weight_decay`, '
                              'in a Keras model',
        'MovingAverageOptimizer': '`tf.train.ExponentialMovingAverage` after '
                                  'the update',
        'MultitaskOptimizerWrapper': 'an optimizer for each task',
        'NadamOptimizer': '`tf.keras.optimizers.Nadam`, in a Keras model',
        'PowerSignOptimizer': _OWN,
        'RegAdagradOptimizer': '`tf.compat.v1.train.AdagradOptimizer`',
        'ScipyOptimizerInterface': _SCIPY,
        'ShampooOptimizer': _OWN,
        'clip_gradients_by_global_norm': '`tf.clip_by_global_norm` of the '
                                         'gradients',
        'extend_with_decoupled_weight_decay':
            '`tf.keras.optimizers.AdamW`, in a Keras model',
    })

__all__ = OLD.held
__dir__ = OLD.dir
__getattr__ = OLD.get
