# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table of living code in docs/estimator.md, from testdata/living.json."""

from __future__ import annotations

import json
import pathlib

from tests.living import libraries

_ROOT = pathlib.Path(__file__).absolute().parents[2]
RESULTS = _ROOT / 'testdata/living.json'
DOCUMENT = _ROOT / 'docs/estimator.md'
_BEGIN = '<!-- Written by tests/living/record.py: -->\n'
_END = '\n<!-- Until here: living code. -->'


def read():
  """What has been found, by environment and library."""
  return json.loads(RESULTS.read_text(encoding='utf-8'))


def write(results):
  """Writes the data, and the document from it."""
  RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + '\n')
  text = DOCUMENT.read_text(encoding='utf-8')
  DOCUMENT.write_text(written(text, results), encoding='utf-8')


def written(text, results):
  """The document with the table in it."""
  return (text.partition(_BEGIN)[0] + _BEGIN + '\n' + render(results) + '\n'
          + _END + text.partition(_END)[2])


def summary(result):
  """Says in a word or two what came of a program."""
  if 'error' in result:
    return result['error']
  failed = [f'{name}: {one["error"]}'
            for name, one in result['estimators'].items() if 'error' in one]
  return '; '.join(failed) or f'{len(result["estimators"])} work'


def render(results):
  """One row for each estimator, then the reasons of what fails."""
  # Others are where to go with one library that fails in these.
  columns = {environment: found for environment, found in results.items()
             if len(found) == len(libraries.LIBRARIES)}
  reasons, rows = [], [
      ['library', 'estimator', *columns], ['---'] * (2 + len(columns))]
  for library in libraries.LIBRARIES:
    for name in _estimators(results, library.name):
      rows.append([library.label, f'`{name}`', *(
          _cell(library.name, found[library.name], name, reasons)
          for found in columns.values())])
  lines = [f'| {" | ".join(row)} |' for row in rows]
  return '\n'.join([*lines, '', *_numbered(reasons, results)]).rstrip()


def _estimators(results, library):
  """The names of all that a program has tried anywhere, in its order."""
  names = {}
  for result in results.values():
    found = result.get(library, {})
    names.update(dict.fromkeys(
        found.get('remedied', found).get('estimators', ())))
  return names or ['all']


def _cell(library, result, name, reasons):
  error = result.get('error') or result['estimators'][name].get('error')
  if not error:
    return _figures(result['estimators'][name])
  number = _number(library, error, reasons)
  remedied = result.get('remedied', {}).get('estimators', {}).get(name, {})
  if 'loss' in remedied:
    return f'{_figures(remedied)}, with the line of ({number})'
  return f'fails ({number})'


def _figures(found):
  loss = f'{found["loss"]:.4f}'
  return f'{loss}, clipped' if 'clipped' in found else loss


def _number(library, error, reasons):
  """The number of a reason, which is added where it is new."""
  reason = (library, error)
  if reason not in reasons:
    reasons.append(reason)
  return reasons.index(reason) + 1


def _numbered(reasons, results):
  """The reasons as a list, each with the error and what one can do."""
  for number, (library, error) in enumerate(reasons, 1):
    fault = libraries.fault_of(library, error)
    works = [environment for environment, found in results.items()
             if 'estimators' in found.get(library, {})]
    where = f' It works with {" and ".join(works)}.' if works else ''
    reason = fault.reason if fault else 'Not known why.'
    yield f'{number}. {library}: `{error}`. {reason}{where}'
    if fault and fault.remedy:
      yield f'\n       {fault.remedy}\n'
