# Everything starts here: `make tables` builds the tables of config.yaml, `make test` runs the tests.
# Only make and Python >= 3.11 are needed; both commands make .venv first, and skip that when it is up to date.

PYTHON ?= python3
CORES ?= all
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet

# A stamp's name holds the digest of what it was installed from, so that an edited or a reverted lock file is noticed.
digest = $(shell cat $(1) | cksum | tr ' ' '-')
BASE_STAMP := $(VENV)/base-$(call digest,envs/torch.txt envs/base.lock pyproject.toml)
DEV_STAMP := $(VENV)/dev-$(call digest,envs/torch.txt envs/base.lock pyproject.toml envs/dev.lock)

.DEFAULT_GOAL := help
.PHONY: help tables test test-vllm test-faults test-slurm lint docs env env-dev env-vllm env-vllm-cpu locks locks-vllm

help:  ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

tables: env  ## make the environment, then every table of the study in config.yaml
	$(BIN)/snakemake --cores $(CORES)

# Two processes, one for each core of the smallest machine; tests/conftest.py says what has to stay in one of them.
test: env-dev  ## make the environment, then run the tests
	$(BIN)/python -m pytest -n 2 --no-loadscope-reorder

test-vllm: env-dev  ## make the environment of vLLM's CPU build as well, then run the tests that need it
	$(BIN)/python -m pytest tests/with_vllm

# The smoke study is killed in training, generation, replay, publication and table writing, and must end with the bytes of
# one that was not; the micro study is edited, killed and damaged at random places, as seeds in the tests' names decide,
# against runs from nothing. (The rest is in `make test`.)
test-faults: env-dev  ## make the environment, then run the faults that take long (an hour)
	$(BIN)/python -m pytest tests/with_faults

test-slurm: env-dev  ## run studies through a real SLURM on this machine; needs root and Debian's slurmctld slurmd slurm-client munge
	$(BIN)/python -m pytest tests/with_slurm

lint: env-dev  ## style, types, and the direction of the dependencies
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	PATH=$(abspath $(BIN)):$$PATH $(BIN)/snakefmt --check --compact-diff -l 120 Snakefile rules  # it calls shfmt by name
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

docs: env-dev  ## the documentation as a site in build/docs; a dead link is an error
	$(BIN)/mkdocs build --quiet

env: $(BASE_STAMP)  ## make .venv with what the workflow needs

env-dev: $(DEV_STAMP)  ## make .venv, with the tools for tests and checks as well

# Studies that need them make these by themselves, with the same rule.
env-vllm: env  ## make the environment of the vLLM engine, for CUDA
	$(BIN)/snakemake --cores 1 environments --configfile workflow/studies/vllm.yaml

env-vllm-cpu: env  ## make the environment of the vLLM engine, for CPUs
	$(BIN)/snakemake --cores 1 environments --configfile workflow/studies/vllm_cpu.yaml

# torch comes first, by itself and without hashes: it alone differs between CPU and CUDA machines (envs/README.md).
# The lock files are complete, so nothing is resolved again (--no-deps) and torch cannot be replaced.
$(BASE_STAMP):
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed, this is %s. Try: make PYTHON=python3.11 ..." % sys.version.split()[0])'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo 'installing envs/torch.txt and envs/base.lock into $(VENV) (once; about two minutes)'
	@rm -f $(VENV)/base-* $(VENV)/dev-*
	@$(PIP) install -r envs/torch.txt
	@$(PIP) install --require-hashes --no-deps -r envs/base.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(DEV_STAMP): $(BASE_STAMP)
	@echo 'installing envs/dev.lock into $(VENV) (once)'
	@$(PIP) install --require-hashes --no-deps -r envs/dev.lock
	@touch $@

# No index and no host is written into a lock: pip's own configuration decides where packages come from.
COMPILE = $(BIN)/pip-compile --quiet --no-header --generate-hashes --strip-extras --no-emit-options \
	--no-emit-index-url --no-emit-find-links

locks: env-dev  ## compile envs/base.lock and envs/dev.lock anew from envs/*.in (on a machine where pip finds the CPU build of torch)
	cd envs && ../$(COMPILE) --unsafe-package torch --constraint torch.txt --output-file base.lock base.in
	cd envs && ../$(COMPILE) --allow-unsafe --constraint base.lock --output-file dev.lock dev.in

# CUDA's from plain PyPI, torch and all. In the CPU's, torch's build is left to the machine, and two packages are left out.
locks-vllm: env-dev  ## compile envs/vllm*.lock anew (fifteen minutes, most of it downloads)
	cd envs && PIP_CONFIG_FILE=/dev/null PIP_FIND_LINKS= ../$(COMPILE) --allow-unsafe --output-file vllm.lock vllm.in
	cd envs && ../$(COMPILE) --unsafe-package torch --unsafe-package torchaudio --unsafe-package torchcodec \
		--constraint torch.txt --output-file vllm-cpu.lock vllm-cpu.in
