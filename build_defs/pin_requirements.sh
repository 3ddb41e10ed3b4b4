#!/bin/sh
# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Pins, for each TensorFlow, what `make` installs: for every Python and platform
# that the TensorFlow has wheels for, in one file. Then what `make docs` and `make
# test-horovod` add. A pin that still fits is kept; UPGRADE=1 takes the newest of
# everything.
# usage: [UPGRADE=1] pin_requirements.sh PYTHON
set -eu
cd "$(dirname "$0")/../requirements"

for version in 2.15 2.16 2.17 2.18 2.19 2.20 2.21; do
  oldest=3.9
  # From 2.16 on Keras 2 is a distribution of its own. It asks for `tensorflow`,
  # so the smaller `tensorflow-cpu` would be a second copy beside it. What
  # TensorFlow no longer asks for itself, `tf.summary` of TensorFlow 2 needs.
  case "$version" in
    2.15) packages="tensorflow-cpu~=2.15.0" ;;
    *) packages="tensorflow~=$version.0 tf-keras~=$version.0 tensorboard" ;;
  esac
  [ "$version" != 2.21 ] || oldest=3.10
  printf '%s\n' -r\ packages.in $packages | "$1" -m uv pip compile --quiet \
    --universal --python-version "$oldest" --no-annotate --no-emit-index-url \
    --custom-compile-command 'make requirements' ${UPGRADE:+--upgrade} \
    --output-file "tensorflow-$version.txt" -
  echo "requirements/tensorflow-$version.txt"
done

# The site is built beside any of these, and Horovod beside the first; what they
# share is pinned alike.
for extra in docs horovod; do
  "$1" -m uv pip compile --quiet --universal --python-version 3.11 --no-annotate \
    --no-emit-index-url --custom-compile-command 'make requirements' \
    ${UPGRADE:+--upgrade} --constraints tensorflow-2.15.txt \
    --output-file $extra.txt $extra.in
  echo "requirements/$extra.txt"
done
