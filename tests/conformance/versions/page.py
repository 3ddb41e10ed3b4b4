# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""docs/versions.md: how near the numbers of each TensorFlow are to 2.15's."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable

from tests.conformance.versions import digests

# In the order of the table: what it is called there.
KINDS = {
    'contract': 'the optimizers',
    'programs': 'the programs',
    'examples': 'the examples',
    'parity': 'the recordings of tf.contrib',
}
_BESIDE = {'TensorFlow': ('tensorflow', 'tensorflow-cpu'),
           'Keras': ('tf-keras', 'keras'), 'numpy': ('numpy',)}

_TEXT = """
# Versions: the same numbers

The same training ends with the same numbers on each TensorFlow of the table.
Trajectories were recorded on TensorFlow 2.15. A trajectory is the list of a
training's variables after each step. On the other versions the same trainings
were repeated and compared. Other versions up to 2.21 can be installed, but were
not compared. [Evidence](evidence.md#the-tests-of-the-tables) names the tests.

| TensorFlow | Python | Keras | numpy | {kinds} |
| --- | --- | --- | --- | {dashes} |
{rows}
Each cell has the number of trajectories and their largest difference. *Equal*:
the numbers have the same bits. Otherwise the difference is counted in
roundings. One rounding is the relative spacing of the variable's type (float32:
1.2e-7) at the size of its largest element. {bound} of them are allowed, in six
steps at most. The layers of mixed_float16 and mixed_bfloat16 compute in a
shorter type: {mixed_bound} roundings of that type are allowed. Queries and keys
of the transformer are compared without their moments, which nearly cancel.

* The optimizers: each optimizer with gradients of every kind (dense, sparse,
  repeated indices, parts; float16 to float64), under v1 and v2 behaviour. Adam
  also in each wrapper whose rule acts on one device. The other wrappers equal
  the bare optimizer on one device, bit for bit, on each version.
* The programs: each of [programs](programs.md) on one device. One of them also
  with each decorator, strategy and `ShardedTPUEstimator`. The other forms are
  compared with the one device, on each version.
* The examples: each program of `examples/` for {example_steps} steps.
* The recordings: scenarios of tf.contrib, recorded on TensorFlow 1.15.5, and
  compared with that recording, or with its
  [correction](differences_from_contrib.md).

No initial value comes from a seed. Random numbers of TensorFlow depend on the
seed and on the number of ops in the graph. If a version builds a graph of other
ops, the same seed gives other initial values.

## Changes in TensorFlow

| since | change | with tfplugin |
| --- | --- | --- |
{changes}
## A cluster of two versions

Tasks of two versions train together, and no version is refused. In the clusters
of this table the chief, the first worker and the first parameter server have
one version. The second worker, the second server and the evaluator have the
other one. "In both roles" means that the two versions also changed places. The
checks are the same as for a cluster of one version:

| trained | versions |
| --- | --- |
{clusters}
More than two versions at once were not tried. A run can also change its version
while it trains: [reliability](reliability.md#another-version-of-tensorflow).
"""
_CHANGES = (
    ('2.16', '`tf.estimator` is gone',
     '`import tfplugin` brings it back: [estimator.md](estimator.md)'),
    ('2.16', '`tf.keras` is Keras 3',
     '`tf.keras` is tf-keras, once Estimator is used'),
    ('2.16', 'products of float16 are rounded differently',
     'see mixed_float16, above'),
    ('2.16', 'TPU embeddings of `TPUEstimator` are gone',
     'an error names the remedy'),
    ('2.18', 'numpy 2 is allowed', 'works with both'),
    ('2.21', 'tensorboard is no longer required',
     'the extra `newest` installs it'),
)
_SERVED = ('2.15 and 2.21, 2.18 and 2.21, in both roles; 2.15 and 2.18; 2.16 '
           'and 2.21')
_CLUSTERS = (
    ('`ElasticAverageStrategy`; `elastic_average`, its checkpoint, evaluation '
     'and export', _SERVED),
    ('`DropStaleGradientStrategy` under `VariableClippingStrategy`; '
     '`drop_stale_gradients` above `clip_variables`', _SERVED),
    ('`examples/wide_and_deep.py`: parts of tables, sparse gradients',
     '2.15 and 2.18; 2.16 and 2.21'),
    ('`CrossShardStrategy`, chief and worker: `run`, and an Estimator',
     '2.15 and 2.21'),
)


def versions() -> dict[str, str]:
  """Returns the versions of what runs here."""
  found = {'Python': platform.python_version()}
  for name, distributions in _BESIDE.items():
    installed = [each for each in distributions if _version(each)]
    found[name] = _version(installed[0])
  return found


def _version(distribution: str) -> str:
  try:
    return importlib.metadata.version(distribution)
  except importlib.metadata.PackageNotFoundError:
    return ''


def _cell(figure: dict) -> str:
  difference = figure['roundings']
  return f'{figure["trajectories"]}: ' + (
      f'{difference:.2g} roundings' if difference else 'equal')


def render(bound: int, mixed_bound: int, example_steps: int) -> str:
  """Returns the document.

  Args:
    bound: How many roundings are allowed.
    mixed_bound: And where layers compute in a shorter type.
    example_steps: How many steps an example trains for.
  """
  rows = []
  for measured in digests.read_measured().values():
    cells = [measured['versions'][name]
             for name in ('TensorFlow', 'Python', 'Keras', 'numpy')]
    rows.append([*cells, *(_cell(measured[kind]) for kind in KINDS)])
  return _TEXT.lstrip().format(
      kinds=' | '.join(KINDS.values()), dashes=' | '.join(['---'] * len(KINDS)),
      rows=_lines(rows), bound=bound, mixed_bound=mixed_bound,
      example_steps=example_steps,
      changes=_lines(_CHANGES), clusters=_lines(_CLUSTERS))


def _lines(rows: Iterable[Iterable[str]]) -> str:
  return ''.join(f'| {" | ".join(row)} |\n' for row in rows)
