# Two commands matter: `make demo` and `make test`. Both set up what they need; Python >= 3.11 and make are enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TEST_VENV := .ci-venv

.PHONY: help setup demo test lint tests chaos chaos-long chaos-mutants http-fuzz clean

help: ## Show this
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-13s %s\n", $$1, $$2}'

setup: $(READY) ## Create the environment with everything in it

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("memd needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[embedded,http-fast,dev]'
	@touch $(READY)

demo: $(READY) ## Run the whole job on shipped conversations and show the memory that comes out
	@$(BIN)/memd demo

test: lint tests chaos ## Everything that CI runs

lint: $(READY) ## Style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

tests: $(READY) ## The tests, against the built and installed wheel
	rm -rf dist $(TEST_VENV)
	$(BIN)/python -m build --no-isolation --wheel --outdir dist . >/dev/null
	$(PYTHON) -m venv $(TEST_VENV)
	$(TEST_VENV)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt "$$(ls dist/*.whl)[embedded,http-fast,dev]"
	cd tests && env INSTALLED_WHEEL=1 ../$(TEST_VENV)/bin/pytest -c ../pyproject.toml --rootdir=.. -p no:cacheprovider -n 4 .

chaos: $(READY) ## Kill a process every 0.3 s for 40 s, and compare what is stored with what was acknowledged
	@PYTHONPATH=tests $(BIN)/python -m chaos gate

chaos-long: $(READY) ## The same for half an hour, with 250,000 contexts
	@PYTHONPATH=tests $(BIN)/python -m chaos long

chaos-mutants: $(READY) ## Seed eight bugs, one at a time, and see each one caught
	@PYTHONPATH=tests $(BIN)/python -m chaos.mutants

http-fuzz: $(READY) ## Hold memd serve against its own OpenAPI document, with many made-up requests
	@PYTHONPATH=tests $(BIN)/python -m http_fuzz --examples 200

clean: ## Remove what was built
	rm -rf dist build $(VENV) $(TEST_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
