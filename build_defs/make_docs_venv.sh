#!/bin/sh
# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Makes .venv-docs: Sphinx and what it needs, of requirements/docs.txt. All else,
# TensorFlow first, it sees in the environment that is given, which stays as it is.
# usage: make_docs_venv.sh VENV
set -eu
cd "$(dirname "$0")/.."

base=$1
venv=.venv-docs
# Whom it was made for; written last, so that what was interrupted is made anew.
stamp=$venv/.requirements
wanted() { cat requirements/docs.txt && echo "# $("$base/bin/python" -VV) $base"; }

wanted | cmp -s - "$stamp" && "$venv/bin/python" -c '' 2>/dev/null && exit 0
"$base/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "make docs needs CPython 3.11 or newer, for Sphinx; $base has" \
    "$("$base/bin/python" -V). For example: make docs TF=2.21" \
    "PYTHON=python3.13" >&2
  exit 1
}
echo "Installing Sphinx into $venv; this takes half a minute"
rm -rf "$venv"
"$base/bin/python" -m venv "$venv"
packages() {
  "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
}
packages "$base" >"$(packages "$venv")/base.pth"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  -r requirements/docs.txt
wanted >"$stamp"
