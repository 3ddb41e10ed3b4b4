# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Changes of a source that no test can notice, and why.

The key is that of a `Mutant`: its file, its function, and its line as changed.
"""

_NORMS = 'tfplugin/ops/norm_clipping.py'
_FLOAT32 = 'a float32 that is cast to float32 is itself'
_THRESHOLD = 'both ways to measure are accurate around the threshold'

REASONS: dict[tuple[str, str, str], str] = {
    (_NORMS, 'NormBound.norms',
     '(self.max_norm >= np.sqrt(x.dtype.as_numpy_dtype(tiny)) * 10000.0)):'):
        _THRESHOLD,
    (_NORMS, 'NormBound.norms',
     'self.max_norm > np.sqrt(x.dtype.as_numpy_dtype(tiny)) * 10001.0):'):
        _THRESHOLD,
    (_NORMS, '_wide',
     'return tf.cast(x, tf.float32) if (x.dtype.size <= 4) else x'): _FLOAT32,
    (_NORMS, '_wide',
     'return tf.cast(x, tf.float32) if x.dtype.size < 5 else x'): _FLOAT32,
    ('tfplugin/distribute/clipping/clip.py', '_any_slice',
     'return tf.reduce_any(exceeds, axis=list(range(2, len(exceeds.shape))))'):
        'a row is written again with the same value for each of its slices',
    ('tfplugin/distribute/clipping/clip.py', 'rewrite_rows',
     'rows_per_block = max(1, _BLOCK_BYTES // max(2, row_bytes))'):
        'only rows without a byte come in smaller blocks: nothing is written',
    ('tfplugin/optimizers/elastic_initialization.py',
     'ElasticInitialization._make_first_values',
     'server, not self._waits, is_awaited=True)'):
        'strategies and decorators ask before a hook begins',
    ('tfplugin/distribute/elastic/elastic_start.py',
     'StartBarrier.announce.put', 'return tf.constant(False)'):
        'a branch must return something; the group around it drops it',
    ('tfplugin/distribute/shards/cross_shard_extended.py',
     'GroupReduction._report_batch',
     'if (len(parts) == self._num_replicas_in_sync >= 1):'):
        'one shard has all rows',
    ('tfplugin/distribute/sessions/refused_runs.py', 'RefusedRuns._watch',
     'if asked is None or (self._lasts() <= self._limit()):'):
        'no run lasts as long as the limit to the nanosecond',
    ('tfplugin/estimator/sharded_tpu_estimator.py', '_join',
     'if isinstance(results[1], tf.data.Dataset):'):
        'one input_fn makes the input of all shards: datasets, or none',
}
