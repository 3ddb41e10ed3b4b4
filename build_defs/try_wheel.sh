#!/bin/sh
# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs the wheel with its requirements for each of some Pythons, and uses it
# where no source lies: the report, a short training on a local cluster, and the
# program of README.md. Nothing is left.
# usage: [PIP=options] try_wheel.sh wheel interpreter...
set -eu

wheel=$(realpath "$1")  # Or the source archive.
readme=$(realpath "$(dirname "$0")/../README.md")
shift
for python; do
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  echo "== $("$python" -V)"
  "$python" -m venv "$scratch/venv"
  "$scratch/venv/bin/python" -m pip install --quiet ${PIP:-} \
    "tfplugin[cpu,train] @ file://$wheel"
  # The first Python block.
  sed -n '/^```python/,/^```/{/^```/!p;/^```$/q}' "$readme" >"$scratch/program.py"
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
