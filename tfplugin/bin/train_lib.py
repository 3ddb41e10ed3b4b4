# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""The main job: training on a cluster of processes, and its result."""

from __future__ import annotations

import functools
import importlib.util
import os
import pathlib
import sys
import sysconfig
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

import tensorflow as tf

from tfplugin.bin import command_line
from tfplugin.bin import experiment
from tfplugin.bin import models
from tfplugin.bin import options as options_lib
from tfplugin.bin import run_files
from tfplugin.bin.processes import ports
from tfplugin.bin.processes import restarts
from tfplugin.bin.processes import run_summary
from tfplugin.bin.processes import supervision
from tfplugin.bin.results import live_display
from tfplugin.bin.results import run_result
from tfplugin.distribute import cluster_config
from tfplugin.events import clock
from tfplugin.events import event_files
from tfplugin.faults import host_names
from tfplugin.faults import language

# Enough for a ps to see the end of the work and to leave.
_PS_LIMIT_SECS = 15.0
# The extra `train`. Modules import these packages only when they use them.
_PACKAGES = ('matplotlib', 'rich', 'tensorboard')


def train(options: options_lib.TrainOptions,
          terminal=None) -> run_result.Result:
  """Trains, shows progress and returns the result, which is not printed.

  A checkpoint in `model_dir` that has the steps already is only evaluated.
  `terminal`, from `live_display.find_terminal`, gets a bar and a table; None: a
  line at intervals.

  An unfit data file or model_dir raises `ValueError`. A missing package,
  another run in the model_dir or the end of a needed role raises
  `RuntimeError`. No process is left in any case, `KeyboardInterrupt` included.
  """
  check_installed()
  first_step = check_input(options)
  earlier = _earlier(options) if first_step else None
  is_done = first_step >= options.steps
  # A single process that has nothing to train would not evaluate either.
  cluster = ({} if options.is_local and not is_done else
             ports.make_cluster(options.workers, options.ps))
  tasks = _tasks(options, cluster, is_done)
  with host_names.given(cluster, options.inject) as cluster, \
      run_files.reserved(options.model_dir) as session:
    options.save(session)
    start = clock.now()
    with (live_display.LiveDisplay(terminal, options.steps) if terminal else
          live_display.Lines(command_line.say, options.steps)
          ) as display:
      _tell_differences(options, earlier, display.say)
      if is_done:
        display.say(f'The checkpoint is at step {first_step}, and --steps is '
                    f'{options.steps}: it is only evaluated. To train further '
                    'choose larger --steps.')
      run = _run_cluster(options, cluster, tasks, display, session)
    wall_secs = clock.now() - start
    roles = {task.name: run.states[task.name].status for task in tasks
             if task.trains}
    return run_result.read_result(options, roles, run.summary, start,
                                  wall_secs, first_step)


def _tasks(options: options_lib.TrainOptions,
           cluster: Mapping[str, list[str]],
           is_done: bool) -> list[cluster_config.Task]:
  """Returns the tasks to start."""
  if not cluster:
    # The single process evaluates each checkpoint itself.
    return [cluster_config.Task('chief', 0)]
  tasks = cluster_config.tasks_of(cluster,
                                  options.evaluator or options.is_local)
  if is_done:
    return [task for task in tasks if task.type == 'evaluator']
  return tasks


def check_installed() -> None:
  """Raises `RuntimeError` if a package for the end of a run is missing."""
  missing = [p for p in _PACKAGES if importlib.util.find_spec(p) is None]
  if missing:
    raise RuntimeError(
        f'tfplugin-train needs {" and ".join(missing)}. Install them with: '
        "python -m pip install 'tfplugin[train]'")


def _run_cluster(options: options_lib.TrainOptions,
                 cluster: Mapping[str, list[str]],
                 tasks: Sequence[cluster_config.Task],
                 display: live_display.Display,
                 session: int) -> supervision.SupervisedRun:
  """Runs the processes until they end."""
  settings = str(pathlib.Path(options.model_dir) / event_files.OPTIONS_NAME)
  command = [sys.executable, '-m', 'tfplugin.bin.role', settings]
  run = supervision.SupervisedRun(_supervision(options, session), cluster,
                                  tasks, display.say)
  variables = {**_environment(), **language.variables(options.inject)}
  with run:
    for task in tasks:
      run.start(task, command, variables)
    for running in run.rounds():
      display.update(run.states, run.ends)
      if running <= {'ps'}:
        break
    if not run.cluster.wait_for_ps(_PS_LIMIT_SECS):
      display.say('A parameter server was still running after '
                  f'{_PS_LIMIT_SECS:g} s; it is stopped now.')
  return run


def _supervision(options: options_lib.TrainOptions,
                 session: int) -> supervision.Settings:
  return supervision.Settings(
      log_dir=str(run_files.log_dir(options.model_dir)),
      summary_path=run_summary.path_in(options.model_dir),
      model_dir=options.model_dir,
      session=session,
      policy=restarts.RestartPolicy(restarts.parse(options.restart),
                                    options.max_restarts,
                                    has_spare=options.spare),
      stall_limit=options.stall_limit,
      grace_secs=options.grace_secs,
      inject=options.inject)


def _environment() -> dict[str, str]:
  """Returns the variables of the roles besides this process's own."""
  # TensorFlow's C++ part logs warnings and errors, unless the user has chosen
  # another level.
  variables = {
      'TF_CPP_MIN_LOG_LEVEL': os.environ.get('TF_CPP_MIN_LOG_LEVEL', '1'),
      'PYTHONUNBUFFERED': '1'}
  root = str(pathlib.Path(__file__).absolute().parents[2])
  if root not in sysconfig.get_paths().values():
    # A child would not find a source tree by itself.
    paths = [root, os.environ.get('PYTHONPATH')]
    variables['PYTHONPATH'] = os.pathsep.join(filter(None, paths))
  return variables


def check_input(options: options_lib.TrainOptions) -> int:
  """Checks data and model_dir before anything is started or written.

  Returns the global step of the checkpoint that is there; 0 without one.
  Damaged data raise `ValueError`. A checkpoint that is corrupt, belongs to
  another model or lacks variables of the optimizer does, too.
  """
  data = experiment.load_data(options)
  shapes = functools.partial(
      run_files.variable_shapes, models.MODELS[options.model].model_fn,
      data.test.inputs[:1], data.test.labels[:1],
      params=experiment.make_params(options, data))
  step = run_files.check_model_dir(
      options.model_dir, shapes(tf.estimator.ModeKeys.EVAL))
  if step is None:
    return 0
  earlier = _earlier(options)
  if step < options.steps:
    run_files.check_training_state(
        options.model_dir,
        # Every technique saves the plain model's variables, by the same names.
        shapes(tf.estimator.ModeKeys.TRAIN),
        f'{options.title} and {options.optimizer}',
        f'{earlier.title} and {earlier.optimizer}' if earlier else '')
  return step


def _earlier(options: options_lib.TrainOptions
            ) -> options_lib.TrainOptions | None:
  """Returns the settings of the previous run in model_dir; None without one."""
  settings = pathlib.Path(options.model_dir) / event_files.OPTIONS_NAME
  return options_lib.load(settings) if settings.exists() else None


def _tell_differences(options: options_lib.TrainOptions,
                      earlier: options_lib.TrainOptions | None,
                      say: Callable[[str], None]) -> None:
  """Reports settings that differ from the previous session's."""
  changed = options.differences(earlier) if earlier else []
  if changed:
    say(f'Warning: the training in {options.model_dir} continues with other '
        f'settings: {", ".join(changed)}. To train separately choose another '
        '--model_dir.')
