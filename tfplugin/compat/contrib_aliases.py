# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names of `tf.contrib` that `tfplugin.contrib.install` restores."""

_NAME = 'tensorflow.contrib'
_REAL = 'tfplugin.contrib'
_TPU = 'tensorflow_estimator.python.estimator.tpu'
# The modules that programs of TensorFlow 1.15 import as `tf`.
APIS = ('tensorflow', 'tensorflow.compat.v1')

# Files of contrib that programs import, and the modules with their names.
FILES = {
    'estimator.python.estimator.replicate_model_fn': f'{_REAL}.estimator',
    'opt.python.training.drop_stale_gradient_optimizer': f'{_REAL}.opt',
    'opt.python.training.elastic_average_optimizer': f'{_REAL}.opt',
    'opt.python.training.variable_clipping_optimizer': f'{_REAL}.opt',
    'tpu.python.ops.tpu_ops': f'{_REAL}.tpu',
    'tpu.python.tpu.tpu_config': f'{_TPU}.tpu_config',
    'tpu.python.tpu.tpu_context': f'{_TPU}.tpu_context',
    'tpu.python.tpu.tpu_estimator': f'{_TPU}.tpu_estimator',
    'tpu.python.tpu.tpu_optimizer': f'{_REAL}.tpu',
}

# The place of the file in 1.15.
_REPLICATE = 'contrib.estimator.python.estimator.replicate_model_fn'

ALIASES = {
    **{f'{api}.contrib': _REAL for api in APIS},
    # The packages of the files.
    **{f'{_NAME}.{file.rsplit(".", depth)[0]}':
           f'{_REAL}.{file.partition(".")[0]}'
       for file in FILES for depth in (1, 2, 3)},
    **{f'{_NAME}.{file}': real for file, real in FILES.items()},
    **{f'tensorflow_estimator.{_REPLICATE.rsplit(".", depth)[0]}':
           f'{_REAL}.estimator' for depth in (2, 3)},
    f'tensorflow_estimator.{_REPLICATE}': f'{_REAL}.estimator',
    'tensorflow_estimator.contrib': _REAL,
    # In this package the file hides the function of the same name.
    **{f'{package}.{_REPLICATE.rsplit(".", 1)[0]}': f'{_REAL}.estimator_files'
       for package in ('tensorflow', 'tensorflow_estimator')},
}
