# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figures of a cell on a link, of the results of `make bench-network`."""

from __future__ import annotations

import statistics
from typing import Callable

from benchmarks import page_part
from benchmarks.network import cells

Results = page_part.Results


def rounds(results: Results, link: cells.Link, name: str) -> list[float]:
  """Returns the steps per second per worker of each round; empty: none.

  Args:
    results: What `make bench-network` wrote.
    link: A link.
    name: That of a cell.
  """
  measured = results['links'].get(link.name, {}).get(name)
  return [statistics.mean(each) for each in measured['steps_per_sec']
          ] if measured else []


def shown(results: Results, link: cells.Link, name: str) -> str | None:
  """Returns the steps per second with the least and the largest round."""
  return page_part.with_spread(rounds(results, link, name), middle(name))


def rate(results: Results, link: cells.Link, name: str) -> float | None:
  """Returns the steps per second over all rounds, or None."""
  every = rounds(results, link, name)
  return middle(name)(every) if every else None


def middle(name: str) -> Callable[[list[float]], float]:
  """Returns what makes one rate of the rounds' of a cell.

  The median, of what is measured again and again. Workers that push gradients
  begin another part of a period apart in each round, and meet accordingly: the
  mean time of their steps.

  Args:
    name: That of the cell.
  """
  return (statistics.harmonic_mean if name in cells.ON_SERVER else
          statistics.median)


def local_rounds(results: Results, link: cells.Link, name: str) -> list[float]:
  """Returns the steps per second of local steps, next to each round of a cell.

  Args:
    results: What `make bench-network` wrote.
    link: A link.
    name: That of the cell; where nothing was measured next to it, those of the
      cell of local steps.
  """
  measured = results['links'].get(link.name, {}).get(name, {})
  beside = measured.get('local_steps_per_sec', ())
  if not beside or None in beside:
    return rounds(results, link, cells.LOCAL)
  return [statistics.mean(each) for each in beside]


def local_rate(results: Results, link: cells.Link,
               name: str) -> float | None:
  """Returns those of `local_rounds` over all rounds, or None."""
  every = local_rounds(results, link, name)
  return statistics.median(every) if every else None


def models_moved(results: Results, link: cells.Link, name: str,
                 ) -> tuple[float, float] | None:
  """Returns what a worker sends and receives in a communication, in models."""
  measured = results['links'].get(link.name, {}).get(name)
  moved = [each for each in (measured or {}).get('bytes', ()) if each]
  return tuple(statistics.median(way) / results['model_bytes']
               for way in zip(*moved)) if moved else None


def processors_ms(results: Results, link: cells.Link,
                  name: str) -> tuple[float, ...] | None:
  """Returns what a step takes of the worker's and the server's processors.

  The third one is what the kernel takes of both.

  Args:
    results: What `make bench-network` wrote.
    link: A link.
    name: That of a cell.
  """
  measured = results['links'].get(link.name, {}).get(name)
  taken = [each for each in (measured or {}).get('processors_ms', ()) if each]
  return tuple(map(statistics.median, zip(*taken))) if taken else None
