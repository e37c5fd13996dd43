# Every target does its own set-up; `make help` lists them.
.DEFAULT_GOAL := help
BIN := .venv/bin
PYTEST = $(BIN)/python -m pytest $(PYTEST_ARGS)
# Parts of the tests, side by side or one alone; tests/parts/parts.py says what they are.
PARTS = $(BIN)/python -m tests.parts
PARTS_ARGS = $(if $(PYTEST_ARGS),-- $(PYTEST_ARGS))

.PHONY: help install demo test test-fast test-all test-unit test-integration test-e2e test-lab test-crash \
	test-histories test-fuzz lab crashes dying-parts histories fuzz yarn bench check lock

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

install: ## set-up alone: virtual environment, locked packages, Java, Kafka's jars
	@.ci/install

demo: install ## days of real flights with planted faults: found, repaired, proven (DEMO_ARGS="--days 3")
	@$(BIN)/makewhole demo $(DEMO_ARGS)

test: install ## all tests that every change runs; how long each part took, and the slowest tests
	@$(PARTS) test $(PARTS_ARGS)

test-fast: install ## an answer in three minutes: unit tests, and some windows within one process
	@$(PARTS) test-fast $(PARTS_ARGS)

test-all: install ## every test, with what takes long: benchmarks, clusters, large skews
	@MAKEWHOLE_EXAMPLES=all $(PARTS) test-all $(PARTS_ARGS)

test-unit: install ## no I/O
	@$(PARTS) unit $(PARTS_ARGS)

test-integration: install ## a real Kafka and PostgreSQL; Spark where it matters
	@$(PARTS) integration $(PARTS_ARGS)

test-e2e: install ## DAGs in a real Airflow
	@$(PARTS) e2e $(PARTS_ARGS)

test-lab: install ## the faults of the lab that every change runs
	@$(PARTS) lab $(PARTS_ARGS)

test-crash: install ## the crash points that every change runs
	@$(PARTS) crash $(PARTS_ARGS)

test-histories: install ## the random histories that every change runs
	@$(PARTS) histories $(PARTS_ARGS)

test-fuzz: install ## damaged inputs of everything that reads what others wrote, for some seconds
	@$(PARTS) fuzz $(PARTS_ARGS)

lab: install ## all faults on a real cluster, docs/faults.md made of them (LAB_ARGS="--lab-rows 6,9 --lab-seeds 10")
	$(PYTEST) -m lab tests/lab --lab-results docs/faults.json $(LAB_ARGS)
	$(BIN)/python -m tests.lab.report

crashes: install ## windows and plans killed, stopped, cut off at every call, and again in recovery; docs/crashes.md (CRASH_ARGS="-k kafka")
	$(PYTEST) -m crash tests/crash --crash-results docs/crashes.json $(CRASH_ARGS)
	$(BIN)/python -m tests.crash.report

dying-parts: install ## parts of a real Airflow killed in the middle of windows (DYING_ARGS="-k scheduler")
	$(PYTEST) -m e2e tests/e2e/dying_parts $(DYING_ARGS)

histories: install ## random histories, each answer held to a model (HISTORIES_ARGS="--histories 1000 --seed 1", "--seed 7 --shrink")
	$(PYTEST) -m histories tests/histories $(HISTORIES_ARGS)

fuzz: install ## ten minutes of damaged inputs (FUZZ_ARGS="--fuzz-seconds 3600 --fuzz-seed 7 -k decode_avro")
	$(PYTEST) -m fuzz tests/fuzz --fuzz-seconds 600 $(FUZZ_ARGS)

yarn: install ## windows on YARN, in client and in cluster mode; fetches Hadoop's servers (50 MB)
	$(PYTEST) -m yarn tests/integration/cluster

bench: install ## side by side with Spark's own Kafka connector; writes bench/results.md (BENCH_ARGS="--quick")
	@$(BIN)/python -m bench $(BENCH_ARGS)

check: install ## format, lint, types, layers, the compose file, the lock
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml
	$(BIN)/python .ci/check_lock.py

LOCKED = --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --quiet

lock: install ## make the locks again from what is wanted; pins change only where they must
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev $(LOCKED) --output-file .ci/requirements.lock
	$(BIN)/uv pip compile bench/datacompy.in $(LOCKED) --output-file bench/datacompy.lock
