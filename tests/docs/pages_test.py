# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The links of the pages lead somewhere, and the code of the pages runs."""
# BUILD data: //:sources
# BUILD data: //testdata
# BUILD deps: //tfplugin:everything

from __future__ import annotations

import ast
import json
import os
import pathlib
import posixpath
import re
import subprocess
import sys

import pytest

from tests.docs import pages
from tfplugin.bin import launch_lib
from tfplugin.bin.launches import launch_options
from tfplugin.bin.processes import ports

_PAGES = pages.pages()
_WITH_CODE = [page for page in _PAGES if not page.startswith('..')
              and pages.blocks(page, 'python', 'diff')]
_NOTEBOOKS = sorted((pages.DOCS / 'notebooks').glob('*.ipynb'))


def _sides(diff: str) -> dict:
  """Returns the two programs of a diff, by the sign of their own lines."""
  lines = diff.splitlines()
  assert all(line[:1] in ('-', '+', ' ', '') for line in lines), diff
  return {sign: '\n'.join(line[1:] for line in lines
                          if line[:1] in (sign, ' ', '')) for sign in '-+'}


def _program(page: str) -> str:
  """Returns the Python blocks of a page, one after the other."""
  return '\n'.join(pages.blocks(page, 'python'))


def _run(program: str, directory: pathlib.Path) -> str:
  """Runs a program as a file, in a process of its own; returns its output."""
  # Ports that a page names may be occupied here.
  for port, free in zip(('2222', '2223'), ports.pick_free(2)):
    program = program.replace(f'localhost:{port}', f'localhost:{free}')
  path = directory / 'program.py'
  path.write_text(program, encoding='utf-8')
  paths = os.pathsep.join([str(pages.ROOT), os.environ.get('PYTHONPATH', '')])
  ended = subprocess.run(
      [sys.executable, str(path)], cwd=directory, capture_output=True,
      text=True, timeout=300, env={**os.environ, 'PYTHONPATH': paths})
  assert ended.returncode == 0, ended.stderr
  return ended.stdout


def test_pages_are_found():
  assert 'index.md' in _PAGES
  assert len(_WITH_CODE) > 8
  assert len(_NOTEBOOKS) == 5


@pytest.mark.parametrize('page', _PAGES)
def test_links_lead_to_a_file_and_an_anchor(page):
  folder = (pages.DOCS / page).parent
  for link in pages.links(page):
    if '://' in link:
      continue
    file, _, anchor = link.partition('#')
    target = folder / file if file else pages.DOCS / page
    assert target.exists(), link
    if anchor:
      assert anchor in pages.anchors(str(target)), link


@pytest.mark.parametrize('page', _PAGES)
def test_pages_of_the_site_link_only_into_it(page):
  # README.md is no page of the site: a link to it would be dead there.
  if page.startswith('..'):
    return
  # By name: a file may be a link itself.
  folder = posixpath.dirname(page)
  outside = [link for link in pages.links(page) if '://' not in link and
             posixpath.normpath(posixpath.join(
                 folder, link.partition('#')[0])).startswith('..')]
  assert not outside


def test_every_page_is_in_one_table_of_contents():
  listed = pages.contents()
  assert len(listed) == len(set(listed))
  there = {page.removesuffix('.md') for page in _PAGES} - {
      '../README', 'index'}
  there |= {f'notebooks/{path.stem}' for path in _NOTEBOOKS}
  assert set(listed) == there


@pytest.mark.sampled(2)
@pytest.mark.usefixtures('forking')
@pytest.mark.parametrize('page', _WITH_CODE)
def test_python_blocks_run_one_after_the_other(page, tmp_path, monkeypatch):
  monkeypatch.delenv('TF_CONFIG', raising=False)
  _run(_program(page), tmp_path)


@pytest.mark.usefixtures('forking')
@pytest.mark.parametrize('page', _WITH_CODE)
def test_both_sides_of_a_diff_are_programs(page, tmp_path):
  for diff in pages.blocks(page, 'diff'):
    sides = _sides(diff)
    compile(sides['-'], page, 'exec')  # Of TensorFlow 1.15: not run here.
    _run(sides['+'], tmp_path)


@pytest.mark.usefixtures('forking')
def test_a_session_program_at_module_level_moves_by_three_lines(tmp_path):
  program, = pages.blocks('start/move_from_contrib.md', 'python')
  assert 'tf.placeholder' in program and 'tf.train.Server' in program
  # Half of the difference a step: 0.1 * 2 * 2.5, the mean of x * x.
  assert _run(program, tmp_path) == 'weight 3.000\n'
  installed = program.replace(
      'from tfplugin import contrib',
      'import tfplugin; tfplugin.contrib.install()').replace(
          'contrib.opt.', 'tf.contrib.opt.')
  assert _run(installed, tmp_path) == 'weight 3.000\n'


def _in_a_cluster() -> str:
  """Returns the session program of the move page, with the page's cluster."""
  program, = pages.blocks('start/move_from_contrib.md', 'python')
  cluster, = (
      block for block in pages.blocks('start/move_from_contrib.md', 'py')
      if 'TF_CONFIG' in block)
  head, rest = program.split('cluster = ', 1)
  body = rest.split('with tf.device(', 1)[1].replace(
      'tf.train.replica_device_setter(cluster=cluster)', 'device').replace(
          'is_chief=True', 'is_chief=is_chief, config=config')
  return f'{head}{cluster}\nwith tf.device({body}'


_LATE = """
import json, os, pathlib, socket, time
config = json.loads(os.environ['TF_CONFIG'])
if config['task']['type'] == 'worker':
  while not pathlib.Path('chief.ended').exists():
    time.sleep(0.05)
  host, port = config['cluster']['chief'][0].rsplit(':', 1)
  while not socket.socket().connect_ex((host, int(port))):
    time.sleep(0.05)
"""
_ENDS = """
if is_chief:
  import pathlib
  pathlib.Path('chief.ended').touch()
"""


@pytest.mark.usefixtures('forking')
@pytest.mark.timeout(120)
def test_a_worker_of_the_session_program_that_starts_last_needs_no_chief(
    tmp_path, monkeypatch):
  (tmp_path / 'program.py').write_text(
      _LATE + _in_a_cluster() + _ENDS, encoding='utf-8')
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv('PYTHONPATH', os.pathsep.join(
      [str(pages.ROOT), os.environ.get('PYTHONPATH', '')]))
  launch_lib.launch(launch_options.LaunchOptions(
      (sys.executable, 'program.py'), str(tmp_path / 'logs'), workers=1,
      ps=1))
  # Half of the difference a step: 0.1 * 2 * 2.5, the mean of x * x.
  for log in ('chief-0', 'worker-0'):
    assert 'weight 3.000' in next(
        (tmp_path / 'logs').glob(f'{log}*')).read_text(encoding='utf-8')


@pytest.mark.parametrize('page', [
    '../README.md', 'start/move_from_contrib.md', 'contrib_names.md',
    'differences_from_contrib.md'])
def test_the_recipe_is_the_same_everywhere(page):
  recipe = ('import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n'
            'from tfplugin import contrib')
  assert any(block.startswith(recipe) for block in pages.blocks(page, 'python'))
  # A recipe that lacks the second line runs no session at module level.
  text = pages.text_of(page)
  assert text.count('from tfplugin import contrib') == text.count(
      'disable_v2_behavior()')


def test_the_page_of_the_rules_shows_short_functions_that_exist():
  includes = re.findall(r'{literalinclude} (\S+)\n:pyobject: (\S+)\n```',
                        pages.text_of('rules.md'))
  assert {path.split('/')[1] for path, _ in includes} == {'tfplugin', 'tests'}
  for path, name in includes:
    source = (pages.DOCS / path).read_text(encoding='utf-8')
    node = ast.parse(source)
    for part in name.split('.'):
      node, = (child for child in node.body if getattr(
          child, 'name', None) == part)
    assert node.end_lineno - node.lineno < 30, name


@pytest.mark.parametrize('path', _NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(path: pathlib.Path):
  cells = json.loads(path.read_text(encoding='utf-8'))['cells']
  code = [cell for cell in cells if cell['cell_type'] == 'code']
  assert code
  assert not [cell for cell in code
              if cell['outputs'] or cell['execution_count'] is not None]
