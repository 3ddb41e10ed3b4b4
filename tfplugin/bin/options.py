# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The settings of the main job: one value that all its processes share."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from typing import Any

from tfplugin.bin import command_line
from tfplugin.bin import models
from tfplugin.bin import techniques
from tfplugin.bin.processes import restarts
from tfplugin.events import event_files
from tfplugin.events import wrapper_names
from tfplugin.faults import language

# Settings that do not change the learnt model.
_OF_A_SESSION = ('model_dir', 'evaluator', 'steps', 'start_limit_secs',
                 'finish_limit_secs', 'restart', 'max_restarts', 'spare',
                 'stall_limit', 'inject', 'grace_secs')


@dataclasses.dataclass(frozen=True)
class TrainOptions:
  """The settings of one run of the main job.

  A field is the value of the flag of `train.py` of the same name, which has its
  description. None stands for a default that follows from other fields.
  """

  model_dir: str
  wrapper: str | None = None
  strategy: str = 'none'
  model: str = 'mlp'
  workers: int | None = None
  ps: int | None = None
  evaluator: bool = True
  steps: int | None = None
  batch_size: int | None = None
  optimizer: str | None = None
  learning_rate: float | None = None
  data_file: str = ''
  communication_period: int = 10
  moving_rate: float | None = None
  rho: float | None = 0.0
  synchronous: bool = False
  staleness: int = 10
  max_norm: float = 2.0
  devices: int = 2
  start_limit_secs: float = 300.0
  finish_limit_secs: float = 120.0
  restart: str = restarts.ON_FAILURE
  max_restarts: int = 3
  spare: bool = False
  stall_limit: float = 0.0
  inject: str = ''
  grace_secs: float = 30.0

  def __post_init__(self):
    """Fills in defaults, and raises `ValueError` for unfit settings."""
    if not self.model_dir or not isinstance(self.model_dir, str):
      raise ValueError('`model_dir` must be a path. Received: '
                       f'{self.model_dir!r}')
    for name in ('wrapper', 'strategy'):
      self._set(name, wrapper_names.current(getattr(self, name)))
    self._default(
        'wrapper', 'elastic_average' if self.strategy == 'none' else 'none')
    _check_choice('wrapper', self.wrapper, techniques.TECHNIQUES)
    _check_choice('strategy', self.strategy, techniques.TECHNIQUES)
    _check_choice('model', self.model, models.MODELS)
    self._check_one_technique()
    defaults = models.MODELS[self.model]
    self._default('workers', 0 if self.has_devices else 1)
    needs_ps = self.workers or self._technique.needs_ps
    self._default('ps', 1 if needs_ps and not self.has_devices else 0)
    for name in ('optimizer', 'learning_rate', 'batch_size', 'steps'):
      self._default(name, getattr(defaults, name))
    _check_choice('optimizer', self.optimizer, models.OPTIMIZERS)
    self._check_numbers()
    self._check_cluster()

  @property
  def is_local(self) -> bool:
    """True if one process does everything."""
    return not self.workers and not self.ps

  @property
  def technique(self) -> str:
    """The technique of the run, as a wrapper or as a strategy."""
    return self.wrapper if self.strategy == 'none' else self.strategy

  @property
  def _technique(self) -> techniques.Technique:
    return techniques.TECHNIQUES[self.technique]

  @property
  def has_devices(self) -> bool:
    """True if the work is split over `devices` of one process."""
    return self._technique.has_devices

  @property
  def title(self) -> str:
    """The title of the run, e.g. 'mlp with wrapper=towers'."""
    kind = 'wrapper' if self.strategy == 'none' else 'strategy'
    return f'{self.model} with {kind}={self.technique}'

  def effective(self) -> dict[str, Any]:
    """Returns the settings that affect this run, by name."""
    return {name: value for name, value in dataclasses.asdict(self).items()
            if self.technique in (techniques.with_setting(name) or
                                  techniques.TECHNIQUES)}

  def differences(self, earlier: TrainOptions) -> list[str]:
    """Returns changed settings, e.g. ['batch_size=64 (was 32)']."""
    before, now = earlier.effective(), self.effective()
    return [f'{name}={now[name]} (was {before[name]})'
            for name in now if name in before and name not in _OF_A_SESSION
            and now[name] != before[name]]

  def save(self, session: int = 1) -> pathlib.Path:
    """Writes the settings into `model_dir`, where `load` finds them.

    Returns the file. `session` is the number of the session that begins. Other
    settings of the session before stay, as `train_options-<its number>.json`.
    """
    path = pathlib.Path(self.model_dir) / event_files.OPTIONS_NAME
    text = json.dumps(self.effective(), indent=2) + '\n'
    if path.exists() and path.read_text() != text:
      path.rename(path.with_stem(f'{path.stem}-{session - 1}'))
    event_files.write_whole(path, text)
    return path

  def _default(self, name: str, value: object) -> None:
    if getattr(self, name) is None:
      self._set(name, value)

  def _set(self, name: str, value: object) -> None:
    # The way that `dataclasses` documents for frozen classes.
    object.__setattr__(self, name, value)

  def _check_one_technique(self) -> None:
    if 'none' not in (self.wrapper, self.strategy):
      raise ValueError(
          '`wrapper` and `strategy` exclude each other: under a strategy the '
          f'optimizer is a plain one. Received: wrapper={self.wrapper}, '
          f'strategy={self.strategy}. Leave one of them out.')

  def _check_numbers(self) -> None:
    for name in ('workers', 'ps', 'staleness', 'max_restarts'):
      command_line.check_integer(name, getattr(self, name), 0)
    for name in ('devices', 'steps', 'batch_size', 'communication_period'):
      command_line.check_integer(name, getattr(self, name), 1)
    for name in ('learning_rate', 'max_norm', 'start_limit_secs',
                 'finish_limit_secs'):
      command_line.check_finite(name, getattr(self, name), is_positive=True)
    for name in ('stall_limit', 'grace_secs'):
      command_line.check_finite(name, getattr(self, name))
    restarts.parse(self.restart)
    language.check_tasks(self.inject, self.workers, self.ps, self.evaluator)
    if self.moving_rate is not None and not 0 <= self.moving_rate <= 1:
      raise ValueError('`moving_rate` must be in [0, 1]. Received: '
                       f'{self.moving_rate!r}')
    if self.rho is not None:
      command_line.check_finite('rho', self.rho)

  def _check_cluster(self) -> None:
    if self.has_devices and not self.is_local:
      raise ValueError(
          f'`{self.technique}` runs on the devices of one process. '
          f'Received: workers={self.workers}, ps={self.ps}. Leave both out; '
          '`devices` says on how many devices it runs.')
    if self._technique.needs_ps and not self.ps:
      raise ValueError(f'`{self.technique}` needs a parameter server. '
                       'Received: ps=0. Set `ps` to 1 or more.')
    if self.workers and not self.ps:
      raise ValueError(
          'Workers need a parameter server to share the variables. Received: '
          f'workers={self.workers}, ps=0. Set `ps` to 1 or more.')
    # A strategy's input_fn gives each device a batch of one size.
    is_even = self._technique.splits_evenly or self.strategy != 'none'
    rest = self.batch_size % self.devices
    if self.has_devices and is_even and rest:
      raise ValueError(
          '`batch_size` must be divisible by `devices`, because each device '
          f'gets an equal part. Received: batch_size={self.batch_size}, '
          f'devices={self.devices}. Set `batch_size` to e.g. '
          f'{self.batch_size - rest + self.devices}.')


def load(path: str | os.PathLike) -> TrainOptions:
  """Reads a file of `TrainOptions.save`; another one is a `ValueError`."""
  text = pathlib.Path(path).read_text()
  try:
    return TrainOptions(**json.loads(text))
  except (TypeError, json.JSONDecodeError) as e:
    raise ValueError(f'{path} must hold the settings of a run ({e}). Received: '
                     f'{text[:80]!r}. Delete it, or choose another '
                     '`model_dir`.') from e


def _check_choice(name: str, value: object, choices) -> None:
  if value not in choices:
    raise ValueError(f'`{name}` must be one of {", ".join(choices)}. '
                     f'Received: {value!r}')
