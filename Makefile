# Two commands matter: `make demo` and `make test`. Both set up what they need; Python >= 3.11 and make are enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TEST_VENV := .ci-venv
PACKAGES := import sysconfig; print(sysconfig.get_path("purelib"))
export PYTHONDONTWRITEBYTECODE :=# set in some environments: each process would compile the tests again
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)  # the output of what runs side by side, one by one

.PHONY: help setup demo test eval test-browser screenshots test-long test-store test-frameworks test-clients \
  test-newest client-types test-repeat smoke lint tests chaos chaos-half chaos-long chaos-mutants http-fuzz bench \
  bench-full bench-peers bench-short bench-gate bench-scale bench-capacity bench-overload bench-long clean

help: ## Show this
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

setup: $(READY) ## Create the environment with everything in it

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("memd needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[embedded,http-fast,dev]'
	@touch $(READY)

demo: $(READY) ## Run the whole job on shipped conversations and show the resulting memory
	@$(BIN)/memd demo

test: $(READY) ## Everything that CI runs, side by side: at most six minutes on two cores
	@$(MAKE) --no-print-directory -j 3 $(SYNC) lint tests chaos-half

test-browser: $(READY) ## The console in a real Chromium: each page with each data set, each action by clicking; four minutes
	@cd tests && ../$(BIN)/python -m pytest -c ../pyproject.toml --rootdir=.. -p no:cacheprovider -m browser -rs -n 2 \
	  --durations 5 browser

screenshots: $(READY) ## Pictures of the console with the demo's memory, into docs/screenshots/
	@PYTHONPATH=tests $(BIN)/python -m support.screenshots

test-long: $(READY) ## The pages of docs/ typed line by line, and searches that rarely find anything; ten minutes
	@PYTHONPATH=tests $(BIN)/python -m support.long

test-store: $(READY) ## PostgreSQL and servers that fail over, started by itself: contract, flow, faults, kills; ten minutes
	@PYTHONPATH=tests $(BIN)/python -m support.on_postgres
	@cd tests && ../$(BIN)/python -m pytest -c ../pyproject.toml --rootdir=.. -p no:cacheprovider -m store -rs -n 3 \
	  --dist loadfile faults/test_failover*.py faults/test_hosts.py doors/test_deploy_runs.py
	@STORE=postgres PYTHONPATH=tests $(BIN)/python -m chaos small

test-frameworks: $(READY) ## Real LangChain, OpenAI Agents, PydanticAI, AgentScope and DeerFlow, each in an environment of its own; ten minutes
	@PYTHONPATH=tests $(BIN)/python -m support.frameworks

test-clients: $(READY) ## The TypeScript client with packages from npm: types, AI SDK, documents, a real memd; a minute
	@cd clients/typescript && npm ci && MEMD=$(CURDIR)/$(BIN)/memd npm test

test-newest: $(READY) ## RQ 3 and OpenTelemetry, in an environment of their own: workers, accounts, traces; three minutes
	@PYTHONPATH=tests $(BIN)/python -m support.newest

client-types: $(READY) ## The TypeScript client's types from the OpenAPI document; after each change of an operation
	@PYTHONPATH=tests $(BIN)/python -m support.typescript_types

smoke: $(READY) ## A moment of each command that CI does not run as a whole
	@PYTHONPATH=tests $(BIN)/python -m support.long --smoke

test-repeat: $(READY) ## The tests that wait or count 20 times, five of them on busy cores; all tests three times, once so
	@PYTHONPATH=tests $(BIN)/python -m support.repeat

lint: $(READY) ## Style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

tests: $(READY) ## The tests, against the built and installed wheel; its dependencies are those of $(VENV)
	rm -rf dist $(TEST_VENV)
	$(BIN)/python -m build --no-isolation --wheel --outdir dist . >/dev/null
	$(PYTHON) -m venv --without-pip $(TEST_VENV)
	$(BIN)/pip --python $(TEST_VENV)/bin/python install --quiet --disable-pip-version-check --no-deps dist/*.whl
	$(BIN)/python -c '$(PACKAGES)' > "$$($(TEST_VENV)/bin/python -c '$(PACKAGES)')/dependencies.pth"
	cd tests && env INSTALLED_WHEEL=1 ../$(TEST_VENV)/bin/python -m pytest -c ../pyproject.toml --rootdir=.. \
	  -p no:cacheprovider -n 4 --dist worksteal --durations 12 .

chaos: $(READY) ## Kill a process every 0.3 s for 40 s; compare with what was acknowledged (STORE=postgres: on PostgreSQL)
	@PYTHONPATH=tests $(BIN)/python -m chaos gate

chaos-half: $(READY) ## Half of it, which `make test` runs
	@PYTHONPATH=tests $(BIN)/python -m chaos half

chaos-long: $(READY) ## The same for half an hour, with 250,000 contexts
	@PYTHONPATH=tests $(BIN)/python -m chaos long

chaos-mutants: $(READY) ## Seed known bugs, one at a time, and see each one caught (STORE=postgres: those of PostgreSQL)
	@PYTHONPATH=tests $(BIN)/python -m chaos.mutants

http-fuzz: $(READY) ## Test memd serve against its own OpenAPI document, with many made-up requests
	@PYTHONPATH=tests $(BIN)/python -m support.http_fuzz --examples 200

eval: $(READY) ## Measure the shipped conversations, attacks and questions by replay; writes evaluation/RESULTS.md
	@$(BIN)/python -m memd.evaluation evaluation

bench: $(READY) bench-peers ## Measure memd and its peers, in five minutes on a quiet machine; writes benchmarks/RESULTS.md
	@$(BIN)/python -m benchmarks --out benchmarks

bench-full: $(READY) bench-peers ## The same with up to 1,000,000 pending keys, and more turns
	@$(BIN)/python -m benchmarks --size full --out benchmarks

bench-short: $(READY) ## A minute: only ratios to peers, beside those of the last release
	@$(BIN)/python -m benchmarks.ratios

bench-gate: $(READY) ## The same; fails when a ratio is far worse than recorded (not in CI)
	@$(BIN)/python -m benchmarks.ratios --gate

bench-scale: $(READY) ## Workers and readers on 1, 2 and 4 hosts (namespaces: root), one cut off; PostgreSQL; four minutes
	@$(BIN)/python -m benchmarks scale --out benchmarks/scale

bench-capacity: $(READY) ## What a context, a read and a user cost with PostgreSQL, and what 1 K, 100 K and 10 M users need
	@$(BIN)/python -m benchmarks capacity --out benchmarks/capacity
	@$(BIN)/python -m benchmarks.needs --into docs/scale.md

bench-overload: $(READY) ## Producers at twice the drain rate for two minutes, then near the memory limit
	@$(BIN)/python -m benchmarks overload --out benchmarks/overload

bench-long: $(READY) ## 200,000 contexts or an hour at a steady rate: memory, files and keys must not grow
	@$(BIN)/python -m benchmarks long --out benchmarks/long

bench-peers: .bench/pydocket/.ready .bench/langmem/.ready .bench/mem0ai/.ready

.bench/%/.ready: benchmarks/requirements.txt  # anthropic: the client with which each of them asks the model
	@rm -rf .bench/$*; $(PYTHON) -m venv .bench/$*
	@if .bench/$*/bin/pip install --quiet --disable-pip-version-check -c benchmarks/requirements.txt $* anthropic 2>.bench/$*.log; \
	then touch $@; else rm -rf .bench/$*; echo "$* cannot be installed here and is skipped: see .bench/$*.log"; fi

clean: ## Remove what was built
	rm -rf dist build .bench .frameworks .newest clients/typescript/node_modules $(VENV) $(TEST_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
