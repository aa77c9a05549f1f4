# Every target sets up what it needs: Python 3.11 or later and make are enough to begin with.
#   make demo     from a clone to clusters
#   make test     everything that must hold

VENV ?= .venv
BIN := $(VENV)/bin
REQUIREMENTS := pyproject.toml constraints.txt
SUITABLE := import sys; sys.exit(sys.version_info < (3, 11))

# Whatever the environment says, bytecode is kept: every start would compile every import anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test check lint format types audit unit servers bench docs wheel image lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.demo ## replay a real stream through a Kafka topic and look at its clusters (ARGS=...)
	@$(BIN)/weald demo $(ARGS)

test: $(VENV)/.dev ## check style, types and imports, and run every test on real servers
	@# Side by side: the servers that have to be fetched and built take longest.
	@$(MAKE) --no-print-directory -j 4 lint types audit servers
	@# More processes than cores: many tests wait for servers, or for a kernel that another compiles.
	$(BIN)/python -m pytest -n 4 --dist loadfile

check: lint types ## check style, types, and the tests near what changed since main
	$(BIN)/python -m pytest -q -n 2 $$($(BIN)/python -m tests.near)

# Code that touches nothing outside, and no long chains: seconds, once its kernels are compiled.
UNIT := $(addprefix tests/,answers cli/config cli/files cli/terminal stream/record treecore \
	$(addprefix mcmc/,estimate leases relational split_merge state sub_cluster))

unit: $(VENV)/.dev ## run the tests of pure code, in seconds, or some others (ARGS="tests/mcmc -k gibbs")
	$(BIN)/python -m pytest $(if $(ARGS),$(ARGS),-q -n 2 -m "not slow" $(UNIT))

lint: $(VENV)/.dev ## check style
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: $(VENV)/.dev ## format, and mend what can be mended automatically
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: $(VENV)/.dev ## check types
	$(BIN)/mypy

audit: $(VENV)/.dev ## look dependencies up among known vulnerabilities, where a network allows it
	$(BIN)/python -m tests.audit

servers: $(VENV)/.dev ## install the servers that the tests start, where this machine allows it
	@sh tests/servers/install.sh
	@$(BIN)/python -m tests.servers.kafka >/dev/null || [ "$$CI" != true ]
	@$(BIN)/python -m tests.servers.helm
	@$(BIN)/python -m tests.servers.kuberay

bench: $(VENV)/.dev ## list the benchmarks, or run one (NAME=..., ARGS=...)
	@if [ -n "$(NAME)" ]; then $(BIN)/python -m benchmarks.$(NAME) $(ARGS); \
	else for name in $(basename $(notdir $(shell grep -l __main__ benchmarks/*.py))); do \
		echo "  make bench NAME=$$name"; done; fi

docs: $(VENV)/.dev ## build the documents as a site, for reading without a network
	$(BIN)/python -m sphinx -W --keep-going -q docs build/site
	@echo "build/site/index.html"

wheel: $(VENV)/.dev ## build and try a wheel that brings compiled kernels (ARGS="--family gaussian")
	@$(BIN)/python docker/build_wheel.py $(ARGS)

image: ## build the container image and start the stack's Weald
	@sh docker/build-image.sh

lock: $(VENV)/.dev ## renew constraints.txt to the newest versions that pyproject.toml admits
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --upgrade \
		--no-header --no-annotate pyproject.toml --output-file constraints.txt

clean: ## remove the environment and everything that was built
	rm -rf $(VENV) build dist ./*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/.demo: $(REQUIREMENTS) | $(BIN)/uv
	@$(call install,embedded,plots)
	@touch $@

$(VENV)/.dev: $(REQUIREMENTS) | $(BIN)/uv
	@$(call install,dev)
	@touch $@ $(VENV)/.demo

# uv installs many times faster; pip stands in where only pip is configured for a private index.
comma := ,
define install
echo "installing weald[$(1)$(if $(2),$(comma)$(2))] into $(VENV)" >&2; \
$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt \
	--editable '.[$(1)$(if $(2),$(comma)$(2))]' \
|| { $(BIN)/python -m ensurepip >/dev/null && \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	--editable '.[$(1)$(if $(2),$(comma)$(2))]'; }
endef

# An environment without a pip of its own, which takes three seconds, where this Python has one.
with_uv = $(1) -m pip --version >/dev/null 2>&1 && $(1) -m venv --without-pip $(VENV) 2>/dev/null \
	&& $(1) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check \
		-c constraints.txt uv 2>/dev/null

$(BIN)/uv:
	@sh -eu -c 'for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
		if command -v "$$python" >/dev/null 2>&1 && "$$python" -c "$(SUITABLE)" 2>/dev/null; then \
			$(call with_uv,"$$python") && exit; \
			"$$python" -m venv $(VENV) || { \
				echo "$$python cannot make an environment; on Debian: apt-get install python3-venv" >&2; \
				exit 1; }; \
			exec $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv; \
		fi; \
	done; \
	echo "Weald needs Python 3.11 or later; python3 is $$(python3 --version 2>&1 || true)." \
		"Name one: make PYTHON=/path/to/python3.11 ..." >&2; exit 1'
