#!/bin/sh
# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Makes .venv and installs requirements.txt into it, unless both are there.
# usage: [PYTHON=interpreter] make_venv.sh
set -eu
cd "$(dirname "$0")/.."

# A copy of the requirements that .venv holds; written last, so that an
# interrupted installation is taken up again.
stamp=.venv/.requirements
cmp -s requirements.txt "$stamp" && .venv/bin/python -c '' 2>/dev/null && exit 0

candidates() {
  if [ -n "${PYTHON:-}" ]; then
    command -v "$PYTHON" || echo "$PYTHON"
    return
  fi
  for name in python3.11 python3.10 python3.9 python3 python; do
    command -v "$name" || true
  done
  ls -d "${HOME:-}"/.pyenv/versions/*/bin/python3 2>/dev/null || true
}

# Prints e.g. `CPython 3.11.7`; nothing where the candidate does not run.
version_of() {
  "$1" -c 'import platform as p; print(p.python_implementation(), p.python_version())' \
    2>/dev/null </dev/null || true
}

found=
chosen=
for candidate in $(candidates); do
  version=$(version_of "$candidate")
  case "$version" in
    "CPython 3.9."*|"CPython 3.10."*|"CPython 3.11."*)
      chosen=$candidate
      break ;;
    "") [ -z "${PYTHON:-}" ] || found="$candidate (does not run)" ;;
    *) found="$found${found:+, }$candidate ($version)" ;;
  esac
done
if [ -z "$chosen" ]; then
  echo "tfplugin needs CPython 3.9, 3.10 or 3.11; found: ${found:-no Python}." \
    "Install one of them, or name it: make PYTHON=/path/to/python3.11" >&2
  exit 1
fi

# An environment that was begun is kept when its interpreter serves.
case "$(version_of .venv/bin/python)" in
  "CPython 3.9."*|"CPython 3.10."*|"CPython 3.11."*) ;;
  *)
    echo "Making .venv with $chosen ($version)"
    rm -rf .venv
    "$chosen" -m venv .venv || {
      rm -rf .venv
      echo "$chosen cannot make a virtual environment: install its venv module" \
        "(Debian and Ubuntu: apt install python3-venv)" >&2
      exit 1
    } ;;
esac
echo "Installing the pinned packages into .venv; this takes a minute or two"
.venv/bin/python -m pip install --quiet --disable-pip-version-check \
  -r requirements.txt
cp requirements.txt "$stamp"
