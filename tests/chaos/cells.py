# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The matrix of faults: what comes, to whom, when, and what trains then.

The matrix is data. A cell is one run with one fault.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools

from tfplugin.faults import language

# The forms that `program.py` trains, and whether their tasks share a ps.
FORMS = {
    'plain': True,
    'elastic_average': True,
    'elastic_average, synchronous': True,
    'ElasticAverageStrategy': True,
    'drop_stale_gradients': True,
    'DropStaleGradientStrategy': True,
    'clip_variables': True,
    'VariableClippingStrategy': True,
    'CrossShardStrategy': False,
}
ELASTIC = tuple(form for form in FORMS if 'lastic' in form)

STEPS = 120
FAULT_STEP = 40
OUTAGE_SECS = 2.0
_SECS = {'slow': 0.05, 'clock': -3600.0, 'slow_save': 1.0}
# Of a slow link, in kB/s, and of a lossy one, in percent.
STRENGTHS = {'slow_link': 5.0, 'lossy_link': 20.0}
# Kinds, how many cells they have, and how many of these are among the tests. A
# group that is added leaves the cells of the others as they are.
_GROUPS = (
    (('kill', 'terminate', 'stop', 'cut', 'fill', 'raise', 'slow', 'nan',
      'damage'), 300, 72),
    (('partition',), 24, 8),
    (('slow_link',), 24, 8),
    (('lossy_link',), 24, 8),
    (('clock',), 24, 9),
    (('readonly',), 24, 6),
    (('slow_save',), 24, 6),
    (('new_address',), 24, 6),
    (('upgrade',), 24, 8),
)
# Stands for the Python of another version of TensorFlow.
OTHER_PYTHON = 'OTHER/bin/python'

_ROLES = ('chief', 'worker', 'ps', 'evaluator')


@dataclasses.dataclass(frozen=True)
class Cell:
  """One run.

  Attributes:
    form: One of `FORMS`.
    kind: Of the fault; one of `language.KINDS`.
    role: The job whose first task it meets.
    phase: One of `language.PHASES`.
    num_ps: How many parameter servers there are.
  """

  form: str
  kind: str
  role: str
  phase: str
  num_ps: int

  @property
  def name(self) -> str:
    """The cell in words."""
    return (f'{self.form}: {self.kind} {self.role} {self.phase}, '
            f'{self.num_ps} ps')

  @property
  def fault(self) -> str:
    """The fault in the language of docs/faults.md."""
    secs = _SECS.get(self.kind, OUTAGE_SECS)
    if self.kind == 'clock' and self.num_ps > 1:
      secs = -secs  # Half of the clocks go back, and half forward.
    has_step = self.phase in (language.STEP, language.SAVING,
                              language.EXCHANGING)
    text = str(language.Fault(
        self.kind, f'{self.role}:0', self.phase, FAULT_STEP if has_step else
        None, secs, STRENGTHS.get(self.kind), OTHER_PYTHON))
    return f'{text}; kill {self.killed}:0 {language.STEP} {FAULT_STEP}' if (
        self.kind == 'damage') else text

  @property
  def killed(self) -> str:
    """The job whose first task has to end, and start again; or none.

    A damaged checkpoint is met when who has the state is gone.
    """
    if self.kind == 'damage':
      return 'ps' if FORMS[self.form] else self.role
    return self.role if self.phase != language.END and self.kind in (
        *language.ENDINGS, 'raise') else ''

  @property
  def loses_the_state(self) -> bool:
    """Whether a NaN comes into variables that all tasks share.

    It is in every update that follows: the run ends with an error. A copy of
    elastic averaging is its worker's own, and that one starts again.
    """
    return (self.kind == 'nan' and self.phase != language.END and
            self.form not in ELASTIC)

  @property
  def may_lose_the_state(self) -> bool:
    """Whether it depends on who ends first whether the NaN is saved."""
    return self.loses_the_state or (
        self.kind == 'nan' and self.role == 'worker' and
        self.form not in ELASTIC)


def _can_be(form: str, kind: str, role: str, phase: str) -> bool:
  trains = role in language.TRAINING_JOBS
  rule = language.KINDS[kind]
  if phase not in rule.phases or role not in rule.jobs:
    return False
  if kind == 'damage' and phase != language.STEP:
    return False  # Earlier there is no checkpoint, and later no restart.
  if role == 'ps' and not FORMS[form]:
    return False
  if role == 'evaluator':
    return phase == language.STEP
  if phase == language.EXCHANGING and not FORMS[form]:
    return trains
  # The chief alone saves.
  return not (role == 'worker' and phase == language.SAVING)


def matrix() -> list[Cell]:
  """Returns the cells that `make chaos` plays."""
  return sorted(itertools.chain.from_iterable(
      _chosen(kinds, size) for kinds, size, _ in _GROUPS), key=_name)


def sample() -> list[Cell]:
  """Returns the cells among the tests: each two values meet that can."""
  return sorted(itertools.chain.from_iterable(
      _chosen(kinds, size) for kinds, _, size in _GROUPS), key=_name)


def _name(cell: Cell) -> str:
  return cell.name


@functools.lru_cache
def possible() -> tuple[Cell, ...]:
  """Returns all that can be: with one ps or with two, by the cell's text."""
  cells = []
  for form, kind, role, phase in itertools.product(
      FORMS, language.KINDS, _ROLES, language.PHASES):
    if _can_be(form, kind, role, phase):
      text = f'{form} {kind} {role} {phase}'
      num_ps = 1 + _number(text) % 2 if FORMS[form] else 0
      cells.append(Cell(form, kind, role, phase, num_ps))
  return tuple(cells)


@functools.lru_cache
def _chosen(kinds: tuple[str, ...], size: int) -> tuple[Cell, ...]:
  """Takes the cells with most pairs of values that none before has had."""
  pool = sorted((cell for cell in possible() if cell.kind in kinds),
                key=lambda cell: _number(cell.name))
  seen, chosen = set(), []
  while len(chosen) < size:
    best = max(pool, key=lambda cell: len(set(_pairs(cell)) - seen))
    pool.remove(best)
    chosen.append(best)
    seen.update(_pairs(best))
  return tuple(chosen)


def _pairs(cell: Cell) -> list[tuple]:
  return [pair for pair in itertools.combinations(
      dataclasses.astuple(cell), 2) if not is_left_to_the_matrix(pair)]


def is_left_to_the_matrix(pair: tuple) -> bool:
  """Whether two values need not meet among the tests.

  An outage, damage, or another version, is of the machine, and the same for
  each form.

  Args:
    pair: Values of two fields, in the order of the fields.
  """
  return pair[0] in FORMS and (
      pair[1] in (*language.OUTAGES, 'damage', 'readonly', 'slow_save',
                  'new_address', 'upgrade'))


def _number(text: str) -> int:
  return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
