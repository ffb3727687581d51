PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
STAMP := .venv/.installed
DOCS_STAMP := .venv/.installed-docs
SEED := 0
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
NUMERICAL := $(addprefix tests/,formula kernels operators functions solvers selection processes)
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --benchmark-disable

.DEFAULT_GOAL := help
.PHONY: help demo test numerical slow coverage lint bench fuzz docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP) ## fit, explain and save a first model
	@$(BIN)/mercer demo

test: $(STAMP) ## all tests and doctests but the slow ones
	@$(PYTEST) -m "not slow"

numerical: $(STAMP) ## the numerical tests, added up as on a processor without AVX-512
	@OPENBLAS_CORETYPE=Haswell ATEN_CPU_CAPABILITY=avx2 $(PYTEST) -m "not slow" $(NUMERICAL)

slow: $(STAMP) ## the slow tests
	@$(PYTEST) -m slow

coverage: $(STAMP) ## the tests, with line coverage of at least 92%
	@$(PYTEST) -m "not slow" --cov --cov-report=term-missing --cov-fail-under=92

lint: $(STAMP) ## ruff, mypy and the import rule
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy src
	@$(BIN)/lint-imports --no-logo

bench: $(STAMP) ## the benchmarks
	@$(BIN)/python -m benchmarks

fuzz: $(STAMP) ## 5,000 random fits, 30,000 model files and 10,000 calls with values changed (SEED=1 for others)
	@failed=0; for what in "fits --count 5000" "files --count 30000" "calls --count 10000"; do \
		OMP_NUM_THREADS=1 $(BIN)/python -m fuzz $$what --seed $(SEED) || failed=1; done; exit $$failed

docs: $(DOCS_STAMP) ## the documentation, in docs/_build/html
	@rm -rf docs/generated
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

clean: ## remove what the other targets made, except .venv
	@rm -rf build dist htmlcov .coverage* .benchmarks .hypothesis docs/_build docs/gallery docs/generated
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	@find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +

$(BIN)/pip:
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "mercer needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "creating .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv

$(STAMP): pyproject.toml constraints.txt | $(BIN)/pip
	@echo "installing mercer and its pinned dependencies into .venv (minutes the first time)"
	@$(PIP) $$(grep '^torch==' constraints.txt)
	@$(PIP) -e ".[all,test,dev]"
	@touch $@

$(DOCS_STAMP): $(STAMP)
	@echo "installing the documentation tools into .venv"
	@$(PIP) -e ".[docs]"
	@touch $@
