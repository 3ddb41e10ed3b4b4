# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the order in which towers update a streaming variable."""

import tensorflow as tf

from tfplugin.distribute.towers import tower_variables

tf1 = tf.compat.v1


def test_the_first_tower_updates_last_and_reads_before_it_does(behavior):
  # 0 -> 0 * 10 + 2 -> 2 * 10 + 3 -> 23 * 10 + 1, of towers 0 to 2.
  shared = tower_variables.SharedVariables()
  with tf.Graph().as_default() as graph, tf1.Session() as session:
    variable = tf1.get_variable('v', initializer=0.0, use_resource=True)
    shared.streaming.append(variable)
    towers, updates, reads = [], [], []
    for tower in range(3):
      before = set(graph.get_operations())
      reads.append(variable.read_value().op)
      updates.append(variable.assign(
          tf.identity(reads[-1].outputs[0]) * 10 + (tower + 1.)).op)
      reads.append(variable.read_value().op)  # Of no update.
      towers.append([op for op in graph.get_operations() if op not in before])
    shared.update_first_tower_last(towers)
    session.run(tf1.global_variables_initializer())
    session.run(updates)
    assert session.run(variable) == 231.0
  # Nothing waits but what an update is made of.
  writes = [next(op for op in ops if op.type == 'AssignVariableOp')
            for ops in towers]
  waits = {op.name: set(op.control_inputs) & set(writes)
           for op in (*reads, *writes)}
  assert waits[writes[0].name] == {writes[2]}
  assert waits[writes[2].name] == {writes[1]}
  read_0, _, read_1, _, read_2, _ = (waits[read.name] for read in reads)
  assert (read_0, read_1, read_2) == ({writes[2]}, set(), {writes[1]})
