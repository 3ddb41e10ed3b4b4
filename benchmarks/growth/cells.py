# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is measured at which sizes, and for how long."""

from __future__ import annotations

import dataclasses

GB = 1e9


@dataclasses.dataclass(frozen=True)
class Curve:
  """A way to train.

  Attributes:
    name: As in the file of results.
    largest: The largest size that it is measured at; None: all of them.
  """

  name: str
  largest: int | None = None


@dataclasses.dataclass(frozen=True)
class Part:
  """What grows with one size.

  Attributes:
    name: As in the file of results and of the picture.
    title: On the page.
    text: What is measured, on the page.
    size: What grows.
    sizes: From the least to the largest.
    unit: Of the figures.
    form: How they should grow, one of `formulas.FORMS`.
    curves: The ways to train.
    base: The curve that others are shown beside; empty: there is none.
    is_added: Whether others are shown less the base, not as a ratio to it.
    rounds: How often each is measured, in turn with the others.
    limit_secs: No round after the first two begins later.
    bytes_of_size: The memory that one more of the size takes.
  """

  name: str
  title: str
  text: str
  size: str
  sizes: tuple[int, ...]
  unit: str
  form: str
  curves: tuple[Curve, ...]
  base: str = ''
  is_added: bool = False
  rounds: int = 5
  limit_secs: float = 200.0
  bytes_of_size: float = 0.0

  def curves_at(self, size: int) -> list[Curve]:
    """Returns the curves that are measured at a size.

    Args:
      size: One of `sizes`.
    """
    return [curve for curve in self.curves
            if curve.largest is None or size <= curve.largest]


def _curves(*names):
  return tuple(map(Curve, names))


BARE, ELASTIC = 'bare optimizer', 'elastic'
# On parameter servers: as `network.cells` names them.
ASYNC, ON_SERVER = 'asynchronous SGD', ('drop stale', 'clipping')
PERIOD = 10
NO_CLIP, INSIDE, BEYOND = 'no clipping', 'no row beyond', 'all rows beyond'
IN_PROCESS = ('drop stale', 'clipping', ELASTIC, 'TowerStrategy, 2 devices',
              'CrossShardStrategy, 2 devices')
STRATEGIES = (
    'DropStaleGradientStrategy', 'ElasticAverageStrategy',
    'TowerStrategy, 1 device', 'CrossShardStrategy, 1 device')
# A model is built once for each device; the peer of the other.
COPIES = (Curve('CrossShardStrategy, 2 devices', 300),
          Curve('MirroredStrategy, 2 devices', 300))
# Few models clip all of their variables.
FEW, ALL = 'a tenth of the variables', 'all variables'
CLIPPED = (
    Curve(f'clipping, {FEW}'), Curve(f'VariableClippingStrategy, {FEW}'),
    Curve(f'clipping, {ALL}', 100),
    Curve(f'VariableClippingStrategy, {ALL}', 100))

MEMORY, FIRST_STEP = 'memory', 'first_step'
_WORKERS = tuple(
    Part(f'workers_{servers}', f'Workers, {servers} parameter server'
         + 's' * (servers > 1),
         'Steps per second of all workers together. The model is an MLP of '
         '7.45 MB, with 32 rows a step. All processes share the cores of one '
         'machine.',
         'workers', (1, 2, 4, 8), 'steps/s', 'saturating',
         _curves(ASYNC, *ON_SERVER, f'elastic, period {PERIOD}, plain'),
         rounds=3, limit_secs=120.0)
    for servers in (1, 2))
_PARTS = (
    *_WORKERS,
    Part('parameters', 'Parameters',
         'Milliseconds of a step with four square layers and 32 rows, in one '
         'process. The process also holds the centre of elastic averaging, '
         f'whose period is {PERIOD}.',
         'parameters', (10**5, 10**6, 10**7, 10**8), 'ms', 'linear',
         _curves(BARE, *IN_PROCESS), BARE, limit_secs=200.0,
         bytes_of_size=120),
    Part('rows', 'Rows of a table',
         'Milliseconds of a step with a sparse gradient of 4,096 ids, in a '
         'table of 64 columns.',
         'rows', (10**5, 3 * 10**5, 10**6, 3 * 10**6, 10**7), 'ms', 'constant',
         _curves(NO_CLIP, INSIDE, BEYOND), NO_CLIP, is_added=True, rounds=15,
         limit_secs=90.0, bytes_of_size=1000),
    Part('variables', 'Variables',
         'Seconds to build loss, gradients and train op, with SGD and a kernel '
         'of [4, 4] for each variable.',
         'variables', (10, 30, 100, 300, 1000), 's', 'linear',
         (*_curves(BARE, 'drop stale', ELASTIC, *STRATEGIES), *CLIPPED,
          *COPIES), BARE,
         limit_secs=210.0),
    Part('towers', 'Towers',
         'Operations of the graph, with 20 variables and SGD.',
         'towers', (1, 2, 4, 8), 'operations', 'linear',
         _curves('TowerStrategy', 'CrossShardStrategy',
                 'ElasticAverageStrategy'), rounds=1, limit_secs=60.0),
    Part(MEMORY, 'Memory of a worker',
         'Peak of the resident memory in MB of a worker that has trained with '
         'a parameter server, including its program.',
         'parameters', (10**5, 10**6, 10**7, 10**8), 'MB', 'linear',
         _curves(ASYNC, *ON_SERVER, ELASTIC), rounds=3, limit_secs=200.0,
         bytes_of_size=80),
    Part(FIRST_STEP, 'Time to the first step',
         'Seconds from the start of a worker\'s process to the end of its '
         'first step, for the same workers. The parameter server already runs.',
         'parameters', (10**5, 10**6, 10**7, 10**8), 's', 'linear',
         _curves(ASYNC, *ON_SERVER, ELASTIC)),
)
PARTS = _PARTS


def _tried(part):
  """The part at its two least sizes, for a try of the machinery."""
  curves = part.curves
  return dataclasses.replace(
      part, sizes=part.sizes[:2], rounds=1, limit_secs=1.0, curves=curves
      if part.name not in (MEMORY, FIRST_STEP) else (curves[0], curves[-1]))


# The figures of these are none.
TRY = tuple(map(_tried, PARTS))
