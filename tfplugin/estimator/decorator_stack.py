# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Order of the decorators of a model_fn."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

CLIP = 'clip_variables'
CROSS_SHARD = 'cross_shard'
DROP_STALE = 'drop_stale_gradients'
ELASTIC = 'elastic_average'
REPLICATE = 'replicate_model_fn'

DECORATORS = (REPLICATE, ELASTIC, DROP_STALE, CLIP, CROSS_SHARD)

# The strategies with the rules of the decorators that no strategy may contain.
STRATEGIES = {ELASTIC: 'ElasticAverageStrategy', REPLICATE: 'TowerStrategy',
              CROSS_SHARD: 'CrossShardStrategy'}

# The attribute of a decorated function that names its decorators, from above.
_MARK = '_tfplugin_decorators'

_ORDER = ('A decorator that splits the batch must be above one that changes '
          'the update')
_ONE_SPLIT = ('no order works: both split the batch over the devices of this '
              'process. Leave out one of them')
_ONE_DEVICE = ('no order works: a worker under elastic_average computes on one '
               'device. Leave out one of them, or use '
               '`tfplugin.distribute.ElasticAverageStrategy`, which averages '
               'the gradients of several devices of a worker')
_LOCAL_STEPS = ('A worker drops single steps of its own copy; an exchange must '
                'not be dropped with them')

# (above, below) -> the reason for a refusal. All others work.
_REFUSED = {
    (ELASTIC, REPLICATE): _ONE_DEVICE,
    (REPLICATE, ELASTIC): _ONE_DEVICE,
    (ELASTIC, CROSS_SHARD): _ONE_DEVICE,
    (CROSS_SHARD, ELASTIC): _ONE_DEVICE,
    (REPLICATE, CROSS_SHARD): _ONE_SPLIT,
    (CROSS_SHARD, REPLICATE): _ONE_SPLIT,
    (DROP_STALE, REPLICATE): _ORDER,
    (DROP_STALE, CROSS_SHARD): _ORDER,
    (CLIP, REPLICATE): _ORDER,
    (CLIP, CROSS_SHARD): _ORDER,
    (DROP_STALE, ELASTIC): _LOCAL_STEPS,
}

_REMEDIES_OF_TWICE = {
    CLIP: 'Put all rules into one.',
    REPLICATE: 'Put all devices into one.',
    CROSS_SHARD: 'Put all devices into one.',
}


def refusal(above: str, below: str) -> str | None:
  """Returns the reason why `above` must not be above `below`, or None.

  Example:
    >>> refusal('replicate_model_fn', 'clip_variables')
    >>> refusal('cross_shard', 'cross_shard')
    'cross_shard above cross_shard: no order works. Put all devices into one.'
  """
  if above == below:
    remedy = _REMEDIES_OF_TWICE.get(above, 'Leave out one of the two.')
    return f'{above} above {below}: no order works. {remedy}'
  reason = _REFUSED.get((above, below))
  if reason is None:
    return None
  if (below, above) in _REFUSED:
    return f'{above} above {below}: {reason}.'
  return f'{above} above {below}. {reason}: put {below} above {above}.'


def check(above: str, below: Sequence[str]) -> None:
  """Raises ValueError unless a decorator may be put above others."""
  for other in below:
    message = refusal(above, other)
    if message:
      raise ValueError(
          f'These decorators of a `model_fn` cannot be stacked so. Received: '
          f'{message}')


def decorators_of(model_fn: Any) -> tuple[str, ...]:
  """Returns the names of the decorators of `model_fn`, from above."""
  return next((getattr(fn, _MARK) for fn in _layers(model_fn)
               if hasattr(fn, _MARK)), ())


def mark(model_fn: Any, names: Sequence[str]) -> None:
  """Records the names of the decorators of a function, from above."""
  setattr(model_fn, _MARK, tuple(names))


def _layers(model_fn: Any) -> Iterator[Any]:
  """Yields a callable, and the functions inside its partials and wrappers."""
  while model_fn is not None:
    yield model_fn
    model_fn = (model_fn.func if isinstance(model_fn, functools.partial) else
                getattr(model_fn, '__wrapped__', None))
