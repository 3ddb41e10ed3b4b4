# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Work of `tfplugin-launch`: starts a machine's tasks, or prints a manifest."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

import tensorflow as tf

from tfplugin.bin import run_files
from tfplugin.bin.launches import compose
from tfplugin.bin.launches import launch_options
from tfplugin.bin.launches import layouts
from tfplugin.bin.launches import manifests
from tfplugin.bin.launches import task_settings
from tfplugin.bin.processes import output
from tfplugin.bin.processes import run_summary
from tfplugin.bin.processes import supervision
from tfplugin.bin.processes import task_states
from tfplugin.bin.results import live_display
from tfplugin.distribute import time_limit
from tfplugin.distribute.sessions import membership
from tfplugin.faults import host_names
from tfplugin.hooks.shutdown import contact
from tfplugin.hooks.shutdown import task_records

_WARNING = ("TensorFlow's servers have no authentication: run them only on a "
            'private network.')
_LOOK_SECS = 2.0
_LEAVE_SECS = 5.0
_START_LIMIT_SECS = 600.0
# A restarting task is unreachable for this time, besides its restart delay.
AWAY_SECS = 30.0


def launch(options: launch_options.LaunchOptions,
           say: Callable[[str], None] = print, terminal=None) -> None:
  """Runs the program in every task of the cluster until the work is done.

  The run is done when the chief and the workers have ended. The parameter
  servers, which may never end by themselves, are ended then. `say` shows each
  line; `terminal`, from `live_display.find_terminal`, also gets a bar and a
  table of the tasks' events; None: lines alone. The last lines have the outcome
  of each task, as has `summary.json` beside the logs.

  A `ValueError` is raised if the logs cannot be written, or no task is to be
  shown. A `RuntimeError` is raised if a needed task fails or no task makes a
  step, with the last log lines of the first failure; or if another run is in
  the model_dir. A `RunFinishedError` says that there is nothing to join. No
  process is left in any case, `KeyboardInterrupt` included.
  """
  layout = options.layout()
  with contextlib.ExitStack() as stack:
    # From here on a worker that joins has a place.
    stack.push(functools.partial(_report_left, layout))
    _launch(options, layout, say, terminal, stack)


def _launch(options: launch_options.LaunchOptions, layout: layouts.Layout,
            say: Callable[[str], None], terminal,
            stack: contextlib.ExitStack) -> None:
  """Runs the program; `stack` ends what was begun. See `launch`."""
  output.check_shown(options.show, [task.name for task in layout.tasks])
  settings = options.task_settings()
  starts = task_settings.make_starts(layout.tasks, options.command, settings,
                                     options.inject)
  if options.manifest:
    for line in _manifest(options, starts):
      say(line)
    return
  if options.dry_run:
    for line in task_settings.describe_starts(layout, starts):
      say(line)
    return
  settings.check_cpus(layout.own)
  if layout.who:
    layout.check_ports()
    say(_WARNING)
  options = dataclasses.replace(
      options, logs_dir=options.logs_dir or _default_logs_dir(options.slurm))
  run_files.make_dir('logs_dir', options.logs_dir)
  display = live_display.Lines(say)
  if terminal is not None and options.model_dir:
    display = live_display.LiveDisplay(terminal, options.steps)
  layout = layout._replace(cluster=stack.enter_context(
      host_names.given(layout.cluster, options.inject)))
  session = None
  if options.model_dir and layout.has_chief:
    session = stack.enter_context(run_files.reserved(options.model_dir))
  run = supervision.SupervisedRun(
      _settings(options, layout, session), layout.cluster, layout.tasks,
      display.say)
  # Called after the processes have ended, even by an error.
  stack.callback(lambda: list(map(say, run_summary.table(run.summary))))
  stack.enter_context(display)
  stack.enter_context(run)
  _run(options, layout, run,
       [start for start in starts if start.task in layout.own], display)


def _default_logs_dir(is_slurm: bool) -> str:
  """Returns a new directory; all launches of a Slurm job share one."""
  return os.path.join(
      f'runs/slurm-{os.environ.get("SLURM_JOB_ID", "")}' if is_slurm else
      run_files.new_dir('logs_dir',
                        time.strftime('runs/launch-%Y%m%d-%H%M%S')), 'logs')


def _report_left(layout: layouts.Layout, error: type | None,
                 *unused) -> None:
  """Frees the place of a worker that joined, and ended otherwise than well."""
  if error is not None and membership.JOINS in layout.tf_config:
    task_records.report_left(
        tf.train.ClusterSpec(dict(layout.cluster)),
        *(task.name for task in layout.own), time_limit_secs=_LEAVE_SECS)


def _manifest(options: launch_options.LaunchOptions,
              starts: Sequence[task_settings.Start]) -> list[str]:
  """Returns the lines of the requested manifest, in JSON.

  The readers of YAML take it: YAML contains JSON.
  """
  make = {manifests.KUBERNETES: manifests.kubernetes,
          manifests.TF_JOB: manifests.tf_job,
          manifests.COMPOSE: compose.compose}[options.manifest]
  document, *others = make(starts, options.pods())
  if others:
    document = {'apiVersion': 'v1', 'kind': 'List',
                'items': [document, *others]}
  return json.dumps(document, indent=2, ensure_ascii=False).splitlines()


def _run(options: launch_options.LaunchOptions, layout: layouts.Layout,
         run: supervision.SupervisedRun, starts: Sequence[task_settings.Start],
         display: live_display.Display) -> None:
  lines: list[str] = []
  shown = output.TaskOutput(lines.append, options.show, options.grep,
                            output.should_color(options.color), options.hide)
  for start in starts:
    role = run.start(
        start.task, start.command,
        {'PYTHONUNBUFFERED': '1', **start.variables}, start.cpus)
    # Lines of an earlier run in the same log are not shown again.
    shown.follow(role)
  display.say(f'Started {", ".join(start.task.name for start in starts)}; '
              f'their logs are in {options.logs_dir}')
  others = _elsewhere(options, layout)
  invitation = _invitation(options, layout)

  def print_tables(is_all: bool = False):
    shown.show(is_all)
    display.say(*lines, *next(invitation, ()))
    lines.clear()
    display.update(run.states, run.ends, steps=task_states.goal(run.states))

  try:
    for _ in _rounds(run, others, options.evaluator_limit_secs, display.say):
      print_tables()
    run.cluster.wait_for_ps(options.ps_limit_secs)
  except KeyboardInterrupt:
    display.stop()
    display.say(f'Stopping the tasks; each has {options.grace_secs:g} s for '
                'its last checkpoint. Another signal stops them at once.')
    run.cluster.end()
    raise
  finally:
    display.stop()
    print_tables(is_all=True)


def _rounds(run: supervision.SupervisedRun, others: OtherLaunches | None,
            evaluator_limit_secs: float,
            say: Callable[[str], None]) -> Iterator[None]:
  """Yields as long as a task trains or evaluates; then come the servers."""
  trained_at = time.monotonic()
  for running in run.rounds():
    yield
    if others is not None:
      others.look()
    if running & {'chief', 'worker'} or (
        others is not None and not others.have_ended()):
      trained_at = time.monotonic()
    elif 'evaluator' not in running:
      return
    elif time.monotonic() - trained_at > evaluator_limit_secs:
      say('The evaluator was still running '
          f'{evaluator_limit_secs:g} s after the other tasks; it is stopped '
          'now.')
      return


def _invitation(options: launch_options.LaunchOptions,
                layout: layouts.Layout) -> Iterator[Sequence[str]]:
  """Yields nothing to show until a worker can join, and then the command."""
  if options.max_workers:
    spec = tf.train.ClusterSpec(dict(layout.cluster))
    while contact.unreachable(spec, ['ps:0']):
      yield ()
    yield [f'Up to {options.max_workers} workers may train. Another one joins '
           f'with: tfplugin-launch --join={layout.cluster["ps"][0]} -- '
           'python program.py']


def _elsewhere(options: launch_options.LaunchOptions, layout: layouts.Layout
              ) -> OtherLaunches | None:
  """Returns the observer of other launches; None if no task needs it."""
  if not layout.training_elsewhere or not layout.serves:
    return None
  policy = options.policy()
  away_secs = AWAY_SECS + max(
      policy.longest_delay(job) for job in ('chief', 'worker'))
  return OtherLaunches(
      layout.cluster, layout.training_elsewhere,
      max(away_secs, options.ps_limit_secs), layout.has_chief)


def _settings(options: launch_options.LaunchOptions, layout: layouts.Layout,
              session: int | None) -> supervision.Settings:
  return supervision.Settings(
      log_dir=options.logs_dir,
      summary_path=run_summary.path_in(options.logs_dir, layout.who),
      model_dir=options.model_dir,
      # Other launches of the same run cannot know the number.
      session=None if layout.who else session,
      policy=options.policy(),
      # The other launch goes on without the worker; this one has nothing else.
      keep_going=options.keep_going and not options.join,
      stall_limit=options.stall_limit,
      grace_secs=options.grace_secs,
      is_restricted=not layout.who,
      tf_config=layout.tf_config,
      inject=options.inject)


class OtherLaunches:
  """Observer of the training tasks of other launches.

  Parameter servers and an evaluator of this launch work for these tasks.
  Launches exchange no messages. Each training task has a server as long as it
  lives, so a connection to its port shows whether it still exists.
  """

  def __init__(self, cluster: Mapping[str, Sequence[str]],
               names: Sequence[str], away_secs: float, has_chief: bool):
    """Connects to no task yet.

    The tasks have ended after `away_secs` seconds in which none was reachable.
    With `has_chief` this launch has the chief and can do without them.
    """
    self._cluster_spec = tf.train.ClusterSpec(dict(cluster))
    self._names = names
    self._away_secs = away_secs
    self._has_chief = has_chief
    self._seen: float | None = None
    self._next_look = float('-inf')
    self._patience: time_limit.Patience | None = None

  def look(self) -> None:
    """Connects to the tasks every two seconds, if called at least as often."""
    now = time.monotonic()
    if now >= self._next_look:
      self._next_look = now + _LOOK_SECS
      if any(not contact.unreachable(self._cluster_spec, [name])
             for name in self._names):
        self._seen = now

  def have_ended(self) -> bool:
    """Returns whether the tasks have ended, once this launch's own have.

    If the chief is one of them and none was ever reachable, a `TimeoutError`
    names them after ten minutes.
    """
    self.look()
    now = time.monotonic()
    if self._seen is None and self._has_chief:
      self._seen = now
    if self._seen is None:
      self._patience = self._patience or time_limit.Patience(
          'This launch', _START_LIMIT_SECS)
      self._patience.check(
          ', '.join(f'{name} at {self._address(name)}' for name in self._names),
          'Call tfplugin-launch on the other machines, too, with the same '
          'flags.')
      return False
    return now - self._seen >= self._away_secs

  def _address(self, name: str) -> str:
    job, _, index = name.partition(':')
    return self._cluster_spec.task_address(job, int(index))
