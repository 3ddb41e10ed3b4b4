#!/bin/sh
# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Makes .venv with the best TensorFlow for the Python that is here: 2.15, which
# Estimator was made for, or, on a Python that it has no wheel for, the newest.
# TF=2.18 chooses another one and makes .venv-2.18. What is there is kept.
# usage: [TF=version] [PYTHON=interpreter] make_venv.sh
set -eu
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-}
venv=.venv${TF:+-$TF}
versions=${TF:-2.15 2.21}
# A copy of the requirements that the environment holds; written last, so that
# an interrupted installation is taken up again.
stamp=$venv/.requirements

# Prints the CPythons that a TensorFlow has wheels for, the best first.
pythons_of() {
  case "$1" in
    2.15) echo 3.11 3.10 3.9 ;;
    2.16|2.17|2.18|2.19) echo 3.12 3.11 3.10 3.9 ;;
    2.20) echo 3.13 3.12 3.11 3.10 3.9 ;;
    2.21) echo 3.13 3.12 3.11 3.10 ;;
  esac
}

requirements_of() { echo "requirements/tensorflow-$1.txt"; }

if [ -z "$(pythons_of "${TF:-2.15}")" ]; then
  echo "\`TF\` must be a release of TensorFlow from 2.15 to 2.21." \
    "Received: '$TF'. For example: make test TF=2.18" >&2
  exit 1
fi
for version in $versions; do
  [ -z "$PYTHON" ] && cmp -s "$(requirements_of "$version")" "$stamp" &&
    "$venv/bin/python" -c '' 2>/dev/null && exit 0
done

candidates() {
  if [ -n "$PYTHON" ]; then
    command -v "$PYTHON" || echo "$PYTHON"
    return
  fi
  for name in python3.11 python3.10 python3.9 python3.13 python3.12 python3 \
      python; do
    command -v "$name" || true
  done
  # Where pyenv keeps all versions; a home directory may be an empty one.
  for root in "${PYENV_ROOT:-}" "${HOME:-}/.pyenv" \
      "$(dirname "$(command -v pyenv || true)")/.."; do
    ls -d "$root"/versions/*/bin/python3 2>/dev/null || true
  done
}

# Prints e.g. `CPython 3.11.7`; nothing where the candidate does not run.
version_of() {
  "$1" -c 'import platform as p; print(p.python_implementation(), p.python_version())' \
    2>/dev/null </dev/null || true
}

# Lines such as `CPython 3.11.7 (/usr/bin/python3.11)`.
found=$(for candidate in $(candidates); do
  version=$(version_of "$candidate")
  [ -z "$version$PYTHON" ] || echo "${version:-does not run} ($candidate)"
done)

# Sets tensorflow and chosen to the first pair that fits.
choose() {
  for tensorflow in $versions; do
    for python in $(pythons_of "$tensorflow"); do
      chosen=$(echo "$found" | grep -m 1 "^CPython $python\." || true)
      [ -z "$chosen" ] || return 0
    done
  done
  return 1
}

if ! choose; then
  needed=$(for version in $versions; do pythons_of "$version"; done \
    | tr ' ' '\n' | sort -Vu | tr '\n' ' ')
  echo "tfplugin${TF:+ with TensorFlow $TF} needs one of CPython ${needed% };" \
    "found: $(echo "${found:-no Python}" | paste -sd , | sed 's/,/, /g')." \
    "Install one of them, or name it: make PYTHON=/path/to/python3.11" >&2
  exit 1
fi
interpreter=${chosen#*\(}
interpreter=${interpreter%)}
requirements=$(requirements_of "$tensorflow")

# An environment that was begun is kept when its interpreter serves.
case "$(version_of "$venv/bin/python")" in
  "${chosen% (*}")
    cmp -s "$requirements" "$stamp" && exit 0 ;;
  *)
    echo "Making $venv with TensorFlow $tensorflow for $chosen"
    rm -rf "$venv"
    "$interpreter" -m venv "$venv" || {
      rm -rf "$venv"
      echo "$interpreter cannot make a virtual environment: install its venv" \
        "module (Debian and Ubuntu: apt install python3-venv)" >&2
      exit 1
    } ;;
esac
echo "Installing the pinned packages into $venv; this takes a minute or two"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  -r "$requirements"
cp "$requirements" "$stamp"
