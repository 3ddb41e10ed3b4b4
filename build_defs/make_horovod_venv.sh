#!/bin/sh
# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Makes .venv-horovod: Horovod, built for the TensorFlow of the environment that is
# given, in which it sees all else, and which stays as it is. Needs cmake and g++.
# usage: make_horovod_venv.sh VENV
set -eu
cd "$(dirname "$0")/.."

base=$1
venv=.venv-horovod
# What it was made of; written last, so that what was interrupted is made anew.
stamp=$venv/.requirements
wanted() { cat requirements/horovod.txt && "$base/bin/python" -m pip list 2>/dev/null \
  | grep -E '^tensorflow' && echo "# $base"; }

wanted | cmp -s - "$stamp" && "$venv/bin/python" -c '' 2>/dev/null && exit 0
for tool in cmake g++; do
  command -v "$tool" >/dev/null || {
    echo "Horovod is built from its sources, which takes $tool. For example:" \
      "apt-get install cmake g++" >&2
    exit 1
  }
done
echo "Building Horovod into $venv; this takes two minutes or more"
rm -rf "$venv"
"$base/bin/python" -m venv "$venv"
packages() {
  "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
}
packages "$base" >"$(packages "$venv")/base.pth"
HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1 \
  HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1 \
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  --no-build-isolation -r requirements/horovod.txt
wanted >"$stamp"
