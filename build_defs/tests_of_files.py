# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which tests are to notice a change of a source file."""

from __future__ import annotations

import ast
import pathlib

_MATRIX = 'tests/distribute/strategy_matrix_test.py'
_OPTIMIZERS = 'tests/conformance/contract_test.py'
_TABLE = 'tests/estimator/decorator_table_test.py'
# A file, or folder, and of the tests of all forms those that are of it.
CONTRACTS = {
    'tfplugin/distribute/clipping/': (_MATRIX, 'VariableClippingStrategy'),
    'tfplugin/distribute/elastic/': (_MATRIX, 'ElasticAverageStrategy'),
    'tfplugin/distribute/shards/': (_MATRIX, 'CrossShardStrategy'),
    'tfplugin/distribute/shards/cross_shard_strategy.py':
        ('tests/distribute/shards/cross_shard_extended_test.py',
         'strategy_run'),
    'tfplugin/distribute/staleness/': (_MATRIX, 'DropStaleGradientStrategy'),
    'tfplugin/distribute/towers/': (_MATRIX, 'TowerStrategy'),
    'tfplugin/estimator/clip_variables.py': (_TABLE, 'clip_variables'),
    'tfplugin/estimator/cross_shard.py': (_TABLE, 'cross_shard'),
    'tfplugin/estimator/drop_stale_gradients.py': (_TABLE, 'drop_stale'),
    'tfplugin/estimator/elastic_average.py': (_TABLE, 'elastic_average'),
    'tfplugin/estimator/replicate.py': (_TABLE, 'replicate_model_fn'),
    'tfplugin/optimizers/cross_shard.py': (_OPTIMIZERS, 'CrossShard'),
    'tfplugin/optimizers/drop_stale_gradient.py': (_OPTIMIZERS, 'DropStale'),
    'tfplugin/optimizers/elastic_average.py': (_OPTIMIZERS, 'ElasticAverage'),
    'tfplugin/optimizers/tower.py': (_OPTIMIZERS, 'TowerOptimizer'),
    'tfplugin/optimizers/variable_clipping.py':
        (_OPTIMIZERS, 'VariableClipping'),
    'tfplugin/optimizers/wrapper.py': (_OPTIMIZERS, 'TowerOptimizer'),
}
# A folder, and the test of the whole, to which the tests of its files leave
# what they do together.
_WHOLE = {
    'tfplugin/distribute/clipping/': 'variable_clipping_strategy_test.py',
    'tfplugin/distribute/elastic/': 'elastic_average_strategy_test.py',
    'tfplugin/distribute/shards/': 'cross_shard_strategy_test.py',
    'tfplugin/distribute/staleness/': 'drop_stale_gradient_strategy_test.py',
    'tfplugin/distribute/towers/': 'tower_strategy_test.py',
}
# A file, or folder, and tests of the code that uses it.
_USERS = {
    'tfplugin/distribute/elastic/elastic_settings.py': (
        'tests/distribute/elastic/elastic_exchange_test.py',),
    'tfplugin/distribute/updates/optimizer_interception.py': (
        'tests/distribute/updates/interception_audit_test.py',),
    'tfplugin/distribute/shards/': (
        'tests/distribute/shards/writes/batch_values_test.py',
        'tests/distribute/shards/writes/write_audit_reports_test.py',
        'tests/distribute/shards/writes/write_audit_test.py',
        'tests/distribute/strategy_reports_test.py',
        'tests/estimator/cross_shard_test.py',
        'tests/estimator/sharded_tpu_estimator_test.py',
        'tests/estimator/sharded_tpu_program_test.py',
        'tests/estimator/tpu_shards_context_test.py',
        'tests/estimator/tpu_shards_test.py'),
    'tfplugin/distribute/staleness/': (
        'tests/optimizers/drop_stale_gradient_steps_test.py',),
    'tfplugin/distribute/towers/': (
        'tests/distribute/towers/split_losses_test.py',
        'tests/estimator/replicate_batch_norm_test.py',
        'tests/estimator/replicate_test.py'),
    'tfplugin/estimator/cluster_training.py': (
        'tests/hooks/shutdown/lost_peers_training_test.py',),
}
_LISTS = 'tests/conformance/source_test.py'

# What pytest is called with.
Arguments = tuple[str, ...]


def tests_of(root: pathlib.Path, file: str) -> list[Arguments]:
  """Returns how to run a file's own tests, and then those of its contract.

  The contract has the test of the wrapper's folder as a whole, the tests of
  that folder that belong to no file, the tests of its users, and the wrapper's
  part of the tests of all forms.

  Its own are the test at the mirrored path, those there that go on with its
  name (`replicate_losses_test.py`, unless there is a `replicate_losses.py`),
  and the test of the whole that source_test.py names.

  Args:
    root: The repository.
    file: A file below tfplugin/, relative to it.

  Raises:
    ValueError: the file has no tests.
  """
  mirrored = root / file.replace('tfplugin/', 'tests/', 1)
  found = [mirrored.with_name(f'{mirrored.stem}_test.py')]
  found += [test for test in mirrored.parent.glob(f'{mirrored.stem}_*_test.py')
            if not _others(root / file, test)]
  names = {test.relative_to(root).as_posix()
           for test in found if test.is_file()}
  names |= {_tests_of_the_whole(root).get(file)} - {None}
  if not names:
    raise ValueError(f'A file must have a test. Received: {file}')
  whole = [each for folder in _WHOLE if file.startswith(folder)
           for each in _of_the_folder(root, folder) if each not in names]
  whole += [test for start, tests in _USERS.items()
            if file.startswith(start) for test in tests]
  # The file's own, which has the shortest name, first.
  own = sorted(names, key=lambda name: (len(name), name))
  return [*((each,) for each in (*own, *whole)), *(
      (test, '-k', word) for start, (test, word) in CONTRACTS.items()
      if file.startswith(start))]


def files_of(arguments: Arguments) -> list[str]:
  """Returns the files among the arguments of pytest."""
  return [argument for argument in arguments if argument.endswith('.py')]


def _of_the_folder(root: pathlib.Path, folder: str) -> list[str]:
  """Returns the tests of a folder that belong to no file, or to all."""
  tests = root / folder.replace('tfplugin/', 'tests/', 1)
  files = [file.stem for file in (root / folder).glob('*.py')]
  return sorted(test.relative_to(root).as_posix()
                for test in tests.glob('*_test.py')
                if test.name == _WHOLE[folder]
                or not any(test.stem.startswith(f'{file}_') for file in files))


def _others(file: pathlib.Path, test: pathlib.Path) -> bool:
  """Whether `test` belongs to a file with a longer name than `file`."""
  return any(other != file and test.stem.startswith(f'{other.stem}_')
             for other in file.parent.glob(f'{file.stem}_*.py'))


def _tests_of_the_whole(root: pathlib.Path) -> dict[str, str]:
  """Returns source_test.py's `_TESTED_BY`; it is read, not imported."""
  path = root / _LISTS
  nodes = ast.parse(path.read_text()).body if path.exists() else []
  return next((ast.literal_eval(node.value) for node in nodes
               if isinstance(node, ast.Assign)
               and ast.unparse(node.targets[0]) == '_TESTED_BY'), {})
