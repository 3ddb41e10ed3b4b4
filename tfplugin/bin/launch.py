# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""tfplugin-launch: runs your own program as a cluster.

    tfplugin-launch --workers=2 --ps=1 --evaluator -- python program.py

Starts the program once for each task, with TF_CONFIG in its environment, as
`tf.estimator.RunConfig` reads it. The program needs no change. On TensorFlow
2.16 and later it needs `import tfplugin`, as all programs with Estimator do.
Without --hosts, --slurm and --manifest, all tasks run on this machine.
"""

from __future__ import annotations

from absl import flags

from tfplugin.bin import command_line
from tfplugin.bin import launch_lib
from tfplugin.bin.launches import joins
from tfplugin.bin.launches import launch_options
from tfplugin.bin.launches import layouts
from tfplugin.bin.launches import manifests
from tfplugin.bin.processes import output
from tfplugin.bin.processes import ports
from tfplugin.bin.results import live_display
from tfplugin.distribute import cluster_config
from tfplugin.hooks.shutdown import chief_report

# Each flag but `live` and `explain` sets the field of `LaunchOptions` of the
# same name; `command` sets `commands`.
_COMMANDS = command_line.CommandLine((
    command_line.Group('The cluster', (
        flags.DEFINE(
            joins.RangeParser(), 'workers', None, 'Worker processes besides '
            'the chief, which trains too. Default: 1. With --hosts: one task '
            'that trains on each machine. With --slurm: the tasks that are '
            'left. MIN:MAX starts MIN; others may join, up to MAX.'),
        flags.DEFINE_string('join', '', 'Joins a run of --workers=MIN:MAX with '
                            'one worker; the address of a parameter server of '
                            'the run.'),
        flags.DEFINE_integer('ps', 1, 'Parameter servers. They are ended when '
                             'the chief and the workers are done.'),
        flags.DEFINE_bool('evaluator', False, 'Whether an evaluator runs too.'),
        flags.DEFINE_string('model_dir', None, "The program's model_dir, where "
                            'its events are. The program does not get this '
                            'flag. A second launch with it is refused.'),
        flags.DEFINE_integer('steps', None, 'The global step at which the '
                             'program ends, for the time left that a terminal '
                             'shows with --model_dir.'),
        flags.DEFINE_string('logs_dir', '', 'The directory of the log files. '
                            'Default: a new one under runs/.'),
        flags.DEFINE_bool('dry_run', False, 'Starts nothing; shows the '
                          'TF_CONFIG and the command of each task.'),
        flags.DEFINE_bool('explain', False, 'Starts nothing; explains the '
                          'TF_CONFIG of this environment.'),
    ), is_common=True),
    command_line.Group('Output', (
        flags.DEFINE_list('show', 'all', 'Whose output is shown: tasks '
                          '(worker:0), jobs (worker), or all.'),
        flags.DEFINE_string('grep', '', 'Only lines in which this regular '
                            'expression is found are shown.'),
        flags.DEFINE_enum('hide', output.DEPRECATIONS, output.HIDDEN, 'The '
                          'lines that are counted instead of shown; the log '
                          'files have them.'),
        flags.DEFINE_enum('color', 'auto', ['auto', 'always', 'never'],
                          'Whether the names of tasks before their lines are '
                          'coloured.'),
        flags.DEFINE_bool('live', True, 'Whether a terminal shows a progress '
                          'bar and a live line for each task; needs '
                          '--model_dir and the package rich.'),
    ), is_common=True),
    command_line.Group('Several machines', (
        flags.DEFINE_list('hosts', [], 'The machines of the run. Call the same '
                          'command, with the same list, on each of them.'),
        flags.DEFINE_string('host', '', 'Which of --hosts this machine is. '
                            'Default: found by its name or address.'),
        flags.DEFINE_bool('slurm', False, 'Whether srun starts this command '
                          'once for each task.'),
        flags.DEFINE_integer(
            'port', None, 'With --hosts or --slurm: the first port; each task '
            f'has the next one. Default: {layouts.DEFAULT_PORT}; with --slurm '
            'one that follows from the job.'),
        flags.DEFINE_string('bind', None, 'On one machine: the only address at '
                            'which the tasks can be reached. Default: '
                            f'{ports.LOOPBACK}.'),
    )),
    command_line.define_failures(
        flags.DEFINE_float('restart_delay_secs', 1.0, 'Seconds before the '
                           'second restart of a task; the first comes at once. '
                           'Doubled for each further one.'),
        flags.DEFINE_bool('keep_going', True, 'Whether the run continues '
                          'without a worker that is lost for good, as '
                          'asynchronous training can.'),
        flags.DEFINE_float('evaluator_limit_secs', 120.0, 'Seconds that the '
                           'evaluator may take after the other tasks have '
                           'ended.'),
        flags.DEFINE_float('ps_limit_secs', 2.0, 'Seconds that a parameter '
                           'server may take to end after all other tasks.'),
    ),
    command_line.Group('Tasks that differ', (
        flags.DEFINE_multi_string('command', [], 'The program of some tasks, '
                                  "e.g. --command=ps='python ps.py'; for a "
                                  'task, a job or all; may be repeated.'),
        flags.DEFINE_multi_string('env', [], 'A variable of some tasks, e.g. '
                                  '--env=worker:0=NAME=value; may be '
                                  'repeated.'),
        flags.DEFINE_multi_string('cpus', [], 'The CPUs that some tasks run '
                                  'on, e.g. --cpus=ps=0-1,4; may be '
                                  'repeated.'),
    )),
    command_line.Group('Kubernetes and containers', (
        flags.DEFINE_enum(
            'manifest', '', ['', *manifests.FORMS], 'Starts nothing; shows the '
            "manifest of the run for Kubernetes, or for Kubeflow's operator, "
            'to pass to `kubectl apply -f -`; or a Compose file.'),
        flags.DEFINE_string('image', '', 'The container image that has the '
                            'program.'),
        flags.DEFINE_string('run_name', 'tfplugin', 'The name of the run.'),
        flags.DEFINE_string('claim', '', 'A PersistentVolumeClaim and where '
                            'all tasks mount it, e.g. runs=/runs.'),
        flags.DEFINE_string('claim_size', '', 'Creates the claim too, with '
                            'this size, e.g. 20Gi.'),
        flags.DEFINE_multi_string('resources', [], 'CPUs, memory and GPUs of '
                                  'the tasks of a job, or of all, e.g. '
                                  '--resources=worker=cpu=4,memory=8Gi,gpu=1; '
                                  'may be repeated.'),
    )),
), (
    command_line.Need(('live',), '--model_dir', lambda v: v['model_dir']),
    command_line.Need(('stall_limit', 'steps'), '--model_dir',
                      lambda v: v['model_dir'] or v['manifest']),
    command_line.Need(launch_options.OF_MANIFESTS, '--manifest=kubernetes',
                      lambda v: v['manifest']),
    command_line.Need(('max_restarts', 'restart_delay_secs', 'spare'),
                      '--restart=on_failure or always',
                      lambda v: v['restart'] != 'never'),
    command_line.Need(('evaluator_limit_secs',), '--evaluator',
                      lambda v: v['evaluator']),
    command_line.Need(('ps_limit_secs',), '--ps=1 or more', lambda v: v['ps']),
    command_line.Need(('keep_going',), '--workers=1 or more',
                      lambda v: v['workers'] is None or any(v['workers'])),
))


def main(argv: list[str]) -> None:
  """Launches the program as the flags say."""
  values = _COMMANDS.values()
  if values.pop('explain'):
    print(cluster_config.explain())
    return
  values['workers'], values['max_workers'] = values['workers'] or (None, None)
  values['commands'] = values.pop('command')
  for name in ('show', 'hosts', 'commands', 'env', 'cpus', 'resources'):
    values[name] = tuple(values[name])
  is_live = values.pop('live')
  say = command_line.say
  try:
    with command_line.errors_of_usage():
      options = launch_options.LaunchOptions(command=tuple(argv[1:]), **values)
      launch_lib.launch(
          options, say, live_display.find_terminal(
              not output.should_color(options.color)) if is_live else None)
  except chief_report.RunFinishedError as e:
    say(str(e))


def run() -> None:
  """Runs the console script."""
  # Flags end where the program begins: later ones are the program's own.
  flags.FLAGS.set_gnu_getopt(False)
  _COMMANDS.run(main)


if __name__ == '__main__':
  run()
