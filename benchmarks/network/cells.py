# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is measured on which links, and for how long."""

from __future__ import annotations

import dataclasses

NUM_WORKER = 2
LAYERS = (784, 1024, 1024, 10)
MODEL_BYTES = 4 * sum((m + 1) * n for m, n in zip(LAYERS, LAYERS[1:]))
LARGEST_PART = 4 * max(
    m * n for m, n in zip(LAYERS, LAYERS[1:])) / MODEL_BYTES
PERIODS = (1, 10, 32, 100)
# Where steps last longer than what overlap puts beside them, on 1 Gbit/s.
HIDING_PERIOD, HIDING = 40, ('plain', 'overlap')
# Name of the column: what elastic averaging is given.
EXCHANGES = {
    'plain': {},
    'overlap': {'overlap': True},
    'float16': {'exchange_dtype': 'float16'},
    'int8': {'exchange_dtype': 'int8'},
    'overlap, float16': {'overlap': True, 'exchange_dtype': 'float16'},
    'overlap, int8': {'overlap': True, 'exchange_dtype': 'int8'},
}
LOCAL, ASYNC = 'local steps', 'asynchronous SGD'
# While the other worker does nothing.
ALONE = 'local steps of one worker alone'
CALLING_ALONE = 'elastic steps of one worker alone'
ON_SERVER = (ASYNC, 'drop stale', 'clipping')
# Each step waits for all workers, and takes the mean of their gradients.
SYNC = 'SyncReplicas'
CROSS_SHARD, MIRRORED = 'cross shard', 'MultiWorkerMirrored'
IN_HALVES = 'cross shard, exchange_dtype=\'float16\''
RINGS = (CROSS_SHARD, IN_HALVES, MIRRORED)
# Horovod's processes talk to each other all the time, so that they are there
# only while they are measured.
ENGINE, HOROVOD = 'cross shard, engine=\'horovod\'', 'Horovod'
OF_HOROVOD = (ENGINE, HOROVOD)
# The wrappers of tf.contrib, and the same program with ours: an MLP of 1.08 MB.
CONTRIB, AS_CONTRIB = 'contrib', 'tfplugin'
PROGRAM_PERIODS = (0, 1, 10)


@dataclasses.dataclass(frozen=True)
class Cell:
  """One way to train.

  Attributes:
    name: As in the file of results.
    period: Steps from one communication to the next; 0: there is none.
    exchange: A key of `EXCHANGES`, of elastic averaging; else empty.
  """

  name: str
  period: int = 1
  exchange: str = ''


def elastic(period: int, exchange: str) -> Cell:
  """The cell of elastic averaging with a period.

  Args:
    period: Steps from one communication to the next.
    exchange: A key of `EXCHANGES`.
  """
  return Cell(f'elastic, period {period}, {exchange}', period, exchange)


_HIDDEN = tuple(elastic(HIDING_PERIOD, exchange) for exchange in HIDING)
CELLS = (Cell(LOCAL, 0), *map(Cell, ON_SERVER), Cell(SYNC),
         *(elastic(period, exchange) for period in PERIODS
           for exchange in EXCHANGES), *_HIDDEN)
# Whose communications are shown with what they take of processors.
COSTED = (*(elastic(10, exchange) for exchange in EXCHANGES), *_HIDDEN)
# Nearly all of whose steps communicate nothing, but call the server.
CALLING = elastic(PERIODS[-1], 'plain')
# The steps that one worker makes alone, by the name of that.
ALONE_STEPS = {ALONE: CELLS[0], CALLING_ALONE: CALLING}
_ALONE_CELLS = tuple(Cell(name, of.period) for name, of in ALONE_STEPS.items())
RING_CELLS = tuple(map(Cell, RINGS))
# Whose processes stay from the first round to the last.
STAYING_CELLS = (*_ALONE_CELLS, *CELLS, *RING_CELLS)
HOROVOD_CELLS = tuple(map(Cell, OF_HOROVOD))
SYNC_CELLS = (Cell(SYNC), *RING_CELLS, *HOROVOD_CELLS)


def program_cell(whose: str, period: int) -> str:
  """The name of a cell of the program that both packages run.

  Args:
    whose: `CONTRIB` or `AS_CONTRIB`.
    period: Steps from one communication to the next; 0: asynchronous SGD.
  """
  return f'{whose}, {f"elastic, period {period}" if period else ASYNC}'


@dataclasses.dataclass(frozen=True)
class Link:
  """A rate, and how long each cell is measured on it.

  Attributes:
    mbit: In 10^6 bits a second; None: not shaped.
    slot_secs: At least; longer until two communications have begun.
    sync_steps: Of the cells whose steps wait for all workers.
    rounds: How often each cell is measured, in turn with the others.
    quick: The cells of the quick selection, by words in their names.
    apart_secs: At most, that workers of elastic averaging, which begin half a
      period apart, have before that, to meet on the link as in a long training.
  """

  mbit: int | None
  slot_secs: float
  sync_steps: int
  rounds: int
  quick: tuple[str, ...] = ('',)
  apart_secs: float = 0.0

  @property
  def name(self) -> str:
    """As in the file of results and on the page."""
    return 'unshaped' if self.mbit is None else f'{self.mbit} Mbit/s'


_FEW = ('local', ASYNC, 'plain', 'period 10, ')
# Where processors are the limit, whose speed may change from second to second,
# it takes many rounds, of several communications each; so it does where workers
# that push gradients meet, as many parts of a period apart.
_MANY, _FEW_ROUNDS = 6, 2
LINKS = (
    Link(None, 2.0, 20, _MANY),
    Link(1000, 4.0, 10, _MANY, apart_secs=6.0),
    Link(100, 5.0, 5, _FEW_ROUNDS, _FEW, 20.0),
    Link(50, 10.0, 3, _FEW_ROUNDS, ('local', ASYNC, 'plain',
                                   'period 10, overlap, int8'), 40.0),
)
# Communications after which workers are as in a long training, also those that
# something has disturbed (docs/speed.md).
COME_APART = 40
# Where the plan is checked with more workers than two, and several servers.
PLAN_WORKERS, PLAN_SERVERS = 4, 2
# Elsewhere and with longer periods the processors of one machine, which four
# workers share, are the limit.
PLAN = (
    Link(100, 5.0, 5, _FEW_ROUNDS, (
        LOCAL, ASYNC, 'period 1, plain', 'period 10, plain'), 20.0),
)
# For a try of the machinery; the figures are none.
TRY = (Link(1000, 0.3, 3, 1, ('local', ASYNC, SYNC, 'period 10, plain',
                              'period 10, overlap, float16')),)


def selected(link: Link, all_cells: tuple[Cell, ...],
             is_quick: bool) -> list[Cell]:
  """Returns the cells that are measured on a link.

  Args:
    link: The link.
    all_cells: Those that there are.
    is_quick: Whether it is the quick selection.
  """
  return [cell for cell in all_cells
          # What processors alone decide is that without a shaped link.
          if (cell.name != CALLING_ALONE or link.mbit is None) and (
              not is_quick or cell in RING_CELLS or
              any(words in cell.name for words in link.quick))]
