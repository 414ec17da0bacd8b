# Needs only Python 3.11 or newer, git and make. Everything else goes into .venv, at the versions
# and with the hashes of requirements.lock. `make` alone lists the targets.

BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input
STAMP := .venv/.installed
# Two processes: one has the embedded Spark and takes all tests on it, the other file by file.
SHARED := -n 2 --no-loadscope-reorder

.PHONY: help setup browser systems demo picture test check chaos soak format bench papers docs lock clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

setup: $(STAMP) ## install everything into .venv

demo: $(STAMP) ## run the main job, end to end, on a generated enterprise
	@$(BIN)/fanplan demo

browser: $(STAMP) ## a browser for the test of the report, unless there is one
	@$(BIN)/python tests/browsers.py

systems: $(STAMP) ## what plans are tried on in tests, where packages may be installed
	@$(BIN)/python tests/packages.py

picture: demo browser ## take the picture of the report in the README anew, from the demo
	@$(BIN)/python tests/picture.py demo/report/index.html docs/images/report.png

test: browser systems ## run the tests
	@$(BIN)/python -m pytest $(SHARED)

check: browser systems ## what must hold before a change goes in: style, types, tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m pytest $(SHARED)

chaos: systems ## attack everything, count what is survived, write docs/chaos.md
	@PYTHONPATH=tests $(BIN)/python -m chaos --docs docs/chaos.md

soak: systems ## change plans on a real network while messages flow, write docs/switching.md
	@PYTHONPATH=tests $(BIN)/python tests/soak.py --docs docs/switching.md

format: $(STAMP) ## format the code and mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(STAMP) ## run the benchmarks
	@set -e; for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file; done

papers: $(STAMP) ## measure the papers anew into docs/papers.md
	@set -e; for name in hybrid genetic overlay hyper matchmaker; do \
	$(BIN)/fanplan papers $$name --out papers-$$name --replace --docs docs/papers.md; done

docs: $(STAMP) ## write the reference of the Python interface anew
	@$(BIN)/python docs/reference.py

# The stamp is written last. Without it an install was never finished, and starts from nothing.
# PySpark comes as source: the setuptools that builds it is the locked one, installed first.
# The lock is complete, so pip only checks at the end that nothing lacks. It would compile packages
# one by one; compileall does what is ever imported on all cores. What fails there fails when imported.
$(STAMP): requirements.lock pyproject.toml
	@echo "Setting up .venv with $(PYTHON)"
	@test -n "$(PYTHON)" || { echo "Fanplan needs Python 3.11 or newer as python3.11 or python3, with venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(if $(wildcard $(STAMP)),,--clear) .venv
	@rm -f $(STAMP)
	@awk '/^[a-z]/ { on = /^setuptools==/ } on' requirements.lock > .venv/build.lock
	@$(PIP) install --require-hashes -r .venv/build.lock
	@echo "Installing the locked packages (the first time takes some minutes)"
	@$(PIP) install --require-hashes --no-deps --no-compile --no-build-isolation -r requirements.lock
	@$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' .venv/lib || true
	@echo "Installing fanplan"
	@$(PIP) install --no-deps --no-build-isolation -e .
	@$(BIN)/python -m pip check
	@echo "Keeping Spark's classes and compiled kernels, so that first commands are quick"
	@$(BIN)/python -m fanplan.cli.prepare || echo "They were not kept: all runs, but starts later" >&2
	@touch $(STAMP)

PYTHON = $(shell for python in python3.11 python3; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)

lock: ## resolve the dependencies anew into requirements.lock
	@echo "Resolving the dependencies"
	@set -e; aside=$$(mktemp -d); trap 'rm -rf "$$aside"' EXIT; \
	$(PYTHON) -m venv "$$aside/venv"; \
	"$$aside/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv; \
	"$$aside/venv/bin/uv" pip compile --quiet --generate-hashes --no-emit-index-url --no-header \
		--python-version 3.11 --extra dev --output-file "$$aside/lock" pyproject.toml; \
	if grep -n '://' "$$aside/lock"; then echo "The lock must hold no addresses" >&2; exit 1; fi; \
	cp "$$aside/lock" requirements.lock

clean: ## remove what builds, tests and the demo leave; .venv stays
	@rm -rf build dist demo papers-* *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache
	@find fanplan tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
