# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of runs that never were: every number of them is known."""

from __future__ import annotations

import json
import math
import pathlib

import tensorflow as tf

from tfplugin.events import event_files
from tfplugin.events import record

tf1 = tf.compat.v1

# When the first event of each run comes, in seconds since the epoch.
START = 1_700_000_000.0


def event(secs, task, name, kind='instant', pid=1, **details):
  return record.Event(START + secs, pid, task, name, kind, details)


def write_events(run_dir, *events):
  """Writes events, the first at 0 s, into the files of their tasks."""
  directory = pathlib.Path(run_dir, 'events')
  directory.mkdir(exist_ok=True)
  for one in events:
    path = directory / f'{one.task.replace(":", "-")}.jsonl'
    with open(path, 'ab') as file:
      file.write(record.encode(one))


def sample(secs, task, step, loss, figures, pid=1):
  return event(secs, task, 'sampling', pid=pid, step=step, num_steps=step,
               loss=loss if math.isfinite(loss) else None, figures=figures,
               counts={})


def write_samples(run_dir, task, *samples, pid=1):
  """Writes events of (seconds, step, loss, figures) as tfplugin-train does."""
  path = event_files.path_of(run_dir, task)
  events = [*event_files.read_file(path).events,
            *(sample(secs, task, *rest, pid) for secs, *rest in samples)]
  path.unlink(missing_ok=True)
  write_events(run_dir, *sorted(events, key=lambda one: one.time))


def write_scalars(directory, tag, *points):
  """Writes a summary of (seconds, step, value) with TensorFlow's writer."""
  with tf.Graph().as_default():
    # The names of files of one second differ by the suffix alone.
    writer = tf1.summary.FileWriter(
        str(directory), filename_suffix='.' + tag.replace('/', '_'))
    for secs, step, value in points:
      summary = tf1.Summary(value=[
          tf1.Summary.Value(tag=tag, simple_value=value)])
      writer.add_event(tf1.Event(wall_time=START + secs, step=step,
                                 summary=summary))
    writer.close()


def write_options(run_dir, **options):
  pathlib.Path(run_dir, 'train_options.json').write_text(json.dumps(options))


def write_chaos_run(run_dir):
  """A worker that is killed, a slow one whose gradients are dropped."""
  write_options(run_dir, wrapper='drop_stale', strategy='none', staleness=2,
                batch_size=32, workers=1)
  write_events(
      run_dir,
      event(0, 'chief:0', 'starting', 'begin', host='here',
            versions={'tfplugin': '0.0'}),
      event(0, 'worker:0', 'starting', 'begin'),
      event(2, 'worker:0', 'waiting', 'begin', on=['chief:0']),
      event(5, 'chief:0', 'starting', 'end', step=0),
      event(5, 'chief:0', 'training', 'begin', step=1, num_steps=1),
      event(5, 'worker:0', 'waiting', 'end'),
      event(6, 'worker:0', 'starting', 'end', step=0),
      event(7, 'worker:0', 'training', 'begin', step=9, num_steps=1),
      event(12, 'worker:0', 'training', step=60, num_steps=11,
            steps_per_sec=2.0),
      event(12, 'worker:0', 'dropping', step=60, num_dropped=5, num_applied=5),
      event(13, 'worker:0', 'injecting', step=66,
            fault='kill worker:0 at step 66'),
      event(15, 'chief:0', 'saving', 'begin', step=80),
      event(16, 'chief:0', 'saving', 'end'),
      event(20, 'worker:0', 'coming_back', pid=2, what='process', step=66),
      event(20, 'worker:0', 'starting', 'begin', pid=2),
      event(24, 'worker:0', 'starting', 'end', pid=2, step=150),
      event(25, 'worker:0', 'training', 'begin', pid=2, step=160, num_steps=1),
      event(35, 'worker:0', 'training', 'end', pid=2, step=200, num_steps=21,
            steps_per_sec=2.0),
      event(35, 'worker:0', 'dropping', pid=2, step=200, num_dropped=5,
            num_applied=15),
      event(35, 'chief:0', 'training', 'end', step=200, num_steps=181,
            steps_per_sec=6.0),
      event(35, 'chief:0', 'dropping', step=200, num_dropped=0,
            num_applied=170),
      event(36, 'worker:0', 'ended', pid=2),
      event(40, 'chief:0', 'ended'))
  write_samples(run_dir, 'chief:0', (6, 5, 2.0, {'staleness': 0}),
                (30, 180, 0.5, {'staleness': 1}))
  write_samples(run_dir, 'worker:0', (26, 165, 1.0, {'staleness': 3}),
                (30, 185, float('nan'), {'staleness': 1}), pid=2)


def write_run_of_all_panels(run_dir):
  """The chaos run, with something to draw in each panel of the page."""
  write_chaos_run(run_dir)
  write_scalars(run_dir / 'eval', 'loss', (9, 100, 0.5))
  write_scalars(run_dir, 'elastic_distance', (9, 100, 0.5))
  write_scalars(run_dir, 'clipping/fraction_clipped', (1, 1, 0.5))
  write_events(run_dir, event(
      41, 'chief:0', 'exchanging', num_exchanges=3))
