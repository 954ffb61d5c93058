# Everything a fresh machine with Python 3.11+ and make needs. Start with: make demo
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
DOCS := .venv-docs
# One more than there are cores: tests of servers wait much of their time.
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# The many processes that tests start find the modules compiled.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test test-all mutants check lint types walls js js-build docs lock clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) ## make .venv with the locked dependencies

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'Sottovoce needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)'; exit 1; }
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)

demo: setup ## a server, simulated people over HTTP, and a picture of what was learned
	$(BIN)/sottovoce demo

test: setup ## the tests that fit in a few minutes; with BASE=main, those that the change since needs
	$(BIN)/pytest -n $(WORKERS) -m "not slow" $(if $(BASE),$$(git diff --name-only $(BASE) | $(BIN)/python .ci/tests_for.py))

test-all: setup ## all tests, the slow ones too
	$(BIN)/pytest -n $(WORKERS)

mutants: setup ## mistakes made on purpose, one at a time: the tests must find each
	$(BIN)/python tests/mutants/run.py -j 2
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory js-build && cd js && npm run --silent mutants; fi

check: lint types walls js test ## the gate: everything that must hold before a change lands

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

walls: setup
	$(BIN)/lint-imports

js: ## the device in TypeScript: build, types, tests (where there is node 20 or newer)
	@if command -v node > /dev/null && command -v npm > /dev/null; \
		then $(MAKE) --no-print-directory js-build && cd js && npm run --silent test; \
		else echo 'make js: skipped, there is no node here'; fi

js-build: js/dist/index.d.ts

js/dist/index.d.ts: js/node_modules/.package-lock.json js/build.js js/tsconfig.json $(shell find js/src -name '*.ts')
	cd js && node build.js

js/node_modules/.package-lock.json: js/package-lock.json
	cd js && npm ci --ignore-scripts --silent
	@touch $@

docs: $(DOCS)/.ready ## the documentation as a site in out/docs; every warning is an error
	NO_MKDOCS_2_WARNING=true $(DOCS)/bin/mkdocs build --strict
	$(DOCS)/bin/python docs/_site/check.py out/docs

$(DOCS)/.ready: requirements-docs.lock
	$(PYTHON) -m venv --clear $(DOCS)
	$(DOCS)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	@touch $@

lock: ## pin the newest dependencies that fit (needs uv)
	uv pip compile pyproject.toml --extra all --group dev --universal --python-version 3.11 \
		--generate-hashes --no-header --quiet --upgrade -o requirements.lock
	uv pip compile --group docs --constraint requirements.lock --universal --python-version 3.11 \
		--generate-hashes --no-header --quiet --upgrade -o requirements-docs.lock

clean: ## remove .venv and caches
	rm -rf .venv $(DOCS) js/node_modules js/dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache out
