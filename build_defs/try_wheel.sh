#!/bin/sh
# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs the wheel, or the source archive, with its requirements for each of
# some Pythons, and uses it where no source lies: the report, a short training on
# a local cluster, and the programs of README.md. Nothing is left.
# usage: [PIP=options] try_wheel.sh wheel|archive interpreter...
set -eu

wheel=$(realpath "$1")
readme=$(realpath "$(dirname "$0")/../README.md")
shift
for python; do
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  echo "== $("$python" -V)"
  "$python" -m venv "$scratch/venv"
  "$scratch/venv/bin/python" -m pip install --quiet ${PIP:-} \
    "tfplugin[cpu,train] @ file://$wheel"
  # All Python blocks.
  sed -n '/^```python/,/^```$/{/^```/!p}' "$readme" >"$scratch/program.py"
  (
    cd "$scratch"
    export PATH="$scratch/venv/bin:$PATH" TF_CPP_MIN_LOG_LEVEL=3 PYTHONPATH=
    python -c 'import tfplugin; assert "venv" in tfplugin.__file__'
    python -m tfplugin
    tfplugin-train --steps=300 --model_dir="$scratch/model"
    python program.py
  )
  rm -rf "$scratch"
done
echo 'All of them work.'
