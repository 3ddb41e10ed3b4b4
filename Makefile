# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0

.DEFAULT_GOAL := help
.PHONY: help venv train test test-all test-horovod lint living chaos soak mutants wheel sdist bench \
  bench-network bench-growth docs docs-all build-files requirements clean

VENV := .venv$(if $(TF),-$(TF))
# Sources come from this directory, whatever the caller has set.
PY := PYTHONPATH= PYTHONDONTWRITEBYTECODE=1 $(VENV)/bin/python
# Two more than processors: tests of clusters wait for a third of their time.
JOBS ?= $(shell echo $$(($$(nproc) + 2)))
PYTEST := $(PY) -m pytest -n $(JOBS) --dist worksteal
# Tests that write the page of the table that they walk.
PAGES := tests.programs.programs_test tests.contrib.old_names_test \
  tests.estimator.decorator_stack_test tests.compat.estimator_names_test \
  tests.distribute.strategy_matrix_test tests.conformance.replica_context_test
ARGS ?=
# Needs no network once it is installed.
SITE = sh build_defs/make_docs_venv.sh $(VENV) && rm -rf build/site && \
  PYTHONPATH= PYTHONDONTWRITEBYTECODE=1 .venv-docs/bin/python -m sphinx \
  --fail-on-warning --keep-going --quiet --doctree-dir build/site-doctrees \
  docs build/site

help:  ## Lists the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1|/' \
	  | awk -F'|' '{printf "%-20s %s\n", $$1, $$2}'
	@echo
	@echo 'PYTHON=interpreter chooses the Python of .venv (CPython 3.9 to 3.13).'
	@echo 'TF=2.18 chooses the TensorFlow (2.15 to 2.21) and uses .venv-2.18.'
	@echo "ARGS='...' is handed to the program, e.g. make train ARGS='--wrapper=towers'."

venv:  ## Makes .venv with the pinned packages, once
	@TF='$(TF)' PYTHON='$(PYTHON)' sh build_defs/make_venv.sh

train: venv  ## Trains on a local cluster with elastic averaging
	$(PY) -m tfplugin.bin.train $(ARGS)

test: venv  ## Runs the tests; of those that take long a sample
	TEST_SAMPLE=$(or $(TEST_SAMPLE),0) $(PYTEST) $(ARGS)

test-all: venv  ## Runs everything, in half an hour; writes the tables in docs/
	TEST_SAMPLE=all $(PYTEST) $(ARGS)
	for page in $(PAGES); do $(PY) -m $$page || exit; done

test-horovod: venv  ## Builds Horovod, and runs the tests that need it
	@sh build_defs/make_horovod_venv.sh $(VENV)
	PYTHONPATH= PYTHONDONTWRITEBYTECODE=1 .venv-horovod/bin/python -m pytest \
	  tests/distribute/shards tests/distributed/lost_peer_test.py $(ARGS)

lint: venv  ## Checks the rules of the house
	$(PY) -m ruff check --no-cache . $(ARGS)
	$(PY) $(VENV)/bin/lint-imports --no-cache
	$(PY) build_defs/house_rules.py

living: venv  ## Runs libraries built on Estimator; writes docs/estimator.md
	$(PY) -m tests.living.record $(ARGS)

chaos: venv  ## Plays faults in clusters; writes docs/chaos.md
	$(PY) -m tests.chaos.record $(ARGS)

soak: venv  ## Faults at random in one run; tells of it in docs/chaos.md
	$(PY) -m tests.chaos.soak $(ARGS)

mutants: venv  ## Changes lines, runs their tests; writes docs/mutants.md
	$(PY) build_defs/mutation_testing.py $(ARGS)

wheel: venv  ## Builds dist/tfplugin-*.whl, byte for byte the wheel of bazel
	@rm -rf build/lib build/bdist.*
	$(PY) -m pip wheel --quiet --no-deps --no-build-isolation \
	  --disable-pip-version-check --wheel-dir dist .
	@ls dist/*.whl

sdist: venv  ## Builds dist/tfplugin-*.tar.gz, the same bytes each time
	$(PY) setup.py -q sdist -d dist
	@ls dist/*.tar.gz

bench: venv  ## Runs every benchmark; figures depend on the machine
	$(PY) -m benchmarks.run $(ARGS)

bench-network: venv  ## Measures on slow links; needs root and Linux; ARGS=--quick
	$(PY) -m benchmarks.network.run $(ARGS)

bench-growth: venv  ## Measures how cost grows, in 20 minutes; writes docs/speed.md
	$(PY) -m benchmarks.growth.run $(ARGS)

docs: venv  ## Builds the site in build/site, without trainings
	$(SITE) -D nb_execution_mode=off $(ARGS)
	@echo 'Open build/site/index.html'

docs-all: venv  ## The same; trains for its pictures and runs its notebooks
	@sh build_defs/make_docs_venv.sh $(VENV)
	PYTHONPATH= .venv-docs/bin/python build_defs/run_pictures.py $(PICTURES)
	$(SITE) $(ARGS)
	@echo 'Open build/site/index.html'

build-files: venv  ## Writes the BUILD files anew from the imports
	$(PY) build_defs/update_build_files.py $(ARGS)

requirements: venv  ## Pins requirements/ anew; UPGRADE=1 takes the newest
	sh build_defs/pin_requirements.sh "$$PWD/$(VENV)/bin/python"

clean:  ## Removes .venv and everything that was built
	rm -rf .venv .venv-* build dist *.egg-info
