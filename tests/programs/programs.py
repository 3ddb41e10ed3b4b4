# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The programs, and the table of what they came to under every form."""

from __future__ import annotations

from typing import Callable

from benchmarks import first_runs
from tests.programs import accumulation
from tests.programs import bert
from tests.programs import deep_fm
from tests.programs import early_stopping
from tests.programs import forms
from tests.programs import gan
from tests.programs import keras_losses
from tests.programs import loss_scale
from tests.programs import mixed_precision
from tests.programs import mnist
from tests.programs import resnet
from tests.programs import wide_deep
from tests.programs.kinds import model_fns as model_fns_lib
from tests.programs.kinds import model_fns_of_batches
from tests.programs.kinds import model_fns_of_draws
from tests.programs.kinds import model_fns_of_gradients
from tests.programs.kinds import model_fns_of_loops
from tests.programs.kinds import model_fns_of_rows
from tests.programs.kinds import model_fns_of_shapes
from tests.programs.kinds import model_fns_of_statistics
from tests.programs.kinds import model_fns_of_steps

PROGRAMS = {
    'BERT': bert.PROGRAM,
    'MNIST': mnist.PROGRAM,
    'ResNet': resnet.PROGRAM,
    'wide and deep, sum': wide_deep.SUM_PROGRAM,
    'wide and deep, mean': wide_deep.MEAN_PROGRAM,
    'DeepFM': deep_fm.PROGRAM,
    'GAN, one optimizer': gan.PROGRAM,
    'Keras losses': keras_losses.PROGRAM,
    'gradient accumulation': accumulation.PROGRAM,
    'dynamic loss scale': loss_scale.PROGRAM,
    'mixed_float16': mixed_precision.FLOAT16,
    'mixed_bfloat16': mixed_precision.BFLOAT16,
    'early stopping': early_stopping.PROGRAM,
}
# Those that predict without labels, from a dictionary.
SERVED_MODEL_FNS = {**model_fns_of_gradients.ALL, **model_fns_of_steps.ALL,
                    **model_fns_of_statistics.ALL}
# Each with a batch. Those of rows are equal in shards, too.
MODEL_FNS = {**model_fns_lib.ALL, **model_fns_of_rows.ALL,
             **model_fns_of_batches.ALL, **SERVED_MODEL_FNS,
             **model_fns_of_loops.ALL, **model_fns_of_shapes.ALL,
             **model_fns_of_draws.ALL}
MODEL_FNS_OF_ROWS = [
    *model_fns_lib.OF_ROWS, *model_fns_of_rows.ALL,
    *model_fns_of_gradients.OF_ROWS, *model_fns_of_steps.OF_ROWS,
    *model_fns_of_loops.OF_ROWS, *model_fns_of_shapes.OF_ROWS,
    *model_fns_of_draws.OF_ROWS]
# With what the error of shards says.
REFUSED_BY_SHARDS = {
    model_fns_of_draws.first_batch: 'values that may differ. Accumulate'}

TEXT = """
# Programs: the comparison

<!-- Written by tests/programs/programs_test.py, which trains every cell of the
tables. -->

Thirteen typical programs were trained under every decorator, every strategy and
`ShardedTPUEstimator`. The programs were not changed. Each cell was trained
under v1 and under v2 behaviour.

*Equal*: the checkpoint has the names and the values of the reference, to
rounding. The reference is the plain program on one device with the whole batch;
numpy applies the rule of the wrapper between its steps. *Refused*: an error
names the combination and the remedy; the reason is below the table. "Clip above
drop" means the decorator `clip_variables` above `drop_stale_gradients`, and so
on.

"""
RULES = {
    '': 'the plain program',
    'clipped': 'clipped after each step',
    'elastic': 'a copy and its centre, with an exchange in every second step',
    'elastic, two copies': 'two copies on the same rows, and their centre',
    'clipped, elastic': 'clipped after each step, then as elastic averaging',
}
MORE_MODEL_FNS = """
## More model_fns

These model_fns follow public code of each kind. They were compared with one
device by [assert_equals_one_device](api/testing.md). In two towers every number
is equal: losses, gradients, variables, metrics and predictions. In the shards
of `cross_shard` losses and variables are equal, with these exceptions: the loss
compares rows of the batch with each other, the model_fn takes or clips
gradients itself, or it draws numbers for each row. A shard then uses only its
own rows: "of its own rows" in the table. *Refused*: inside a branch, the
model_fn writes numbers that depend on rows.

"""
FIRST_RUNS = """
## tfplugin-train

`tfplugin-train` has models of its own, which it trains with each wrapper. The
table has medians of three runs of 5,000 steps (`--model=cnn`: 3,000) on 2
cores. All processes share the cores of one machine, so the table compares
accuracy, not speed: [speed](speed.md) has figures of a network. The accuracy of
`--model=embedding` is how often a true neighbour ranks above a random word.

"""
SPLITS = """
Towers and shards split a batch in two. Most programs then give the numbers of
the whole batch. In the other programs the reference is another computation:

| program | split | what is computed on one device |
| --- | --- | --- |
"""


# The names of forms whose row in the table would not explain itself.
_LABELS = {
    'the same over drop stale': 'VariableClippingStrategy over drop stale',
    'over towers': 'VariableClippingStrategy over towers',
    'over mirrored': 'VariableClippingStrategy over MirroredStrategy',
    'over cross shard': 'VariableClippingStrategy over cross shard',
    'the same with clip': 'ShardedTPUEstimator with clip',
}


def cell(program: str, form: str, reasons: list[str]) -> str:
  """Returns what is in the table; notes the reason of a refusal."""
  refused = PROGRAMS[program].refused.get(form)
  if refused is None:
    return 'equal'
  if refused.why not in reasons:
    reasons.append(refused.why)
  return f'refused ({reasons.index(refused.why) + 1})'


def _table(rows: list[list[str]]) -> str:
  rows.insert(1, ['---'] * len(rows[0]))
  return ''.join(f'| {" | ".join(row)} |\n' for row in rows)


def _first_line(model_fn: Callable) -> str:
  return model_fn.__doc__.split('\n')[0].rstrip('.')


def render() -> str:
  """Returns the document."""
  reasons = []
  cells = _table([['form', *PROGRAMS]] + [
      [_LABELS.get(form, form),
       *(cell(program, form, reasons) for program in PROGRAMS)]
      for form in forms.FORMS])
  notes = ''.join(f'{number}. {why}\n'
                  for number, why in enumerate(reasons, start=1))
  rules = _table([['form', 'split of the batch', 'equal to']] + [
      [_LABELS.get(name, name), form.split or 'none', RULES[form.rule]]
      for name, form in forms.FORMS.items()])
  splits = ''.join(
      f'| {name} | {split} | {formula} |\n' for name, program
      in PROGRAMS.items() for split, formula in program.formulas.items())
  in_shards = {**dict.fromkeys(MODEL_FNS, 'of its own rows'),
               **dict.fromkeys(MODEL_FNS_OF_ROWS, 'equal'),
               **dict.fromkeys(REFUSED_BY_SHARDS, 'refused')}
  model_fns = _table([['model_fn', 'towers', 'shards']] + [
      [_first_line(model_fn), 'equal', in_shards[model_fn]]
      for model_fn in MODEL_FNS])
  parts = [
      TEXT, cells, '\nThe reasons:\n\n', notes, '\nThe reference of '
      'each form:\n\n', rules, SPLITS, splits, MORE_MODEL_FNS,
      model_fns, FIRST_RUNS,
      first_runs.PART.section(first_runs.PART.read()), '\n']
  return ''.join(parts).lstrip()
