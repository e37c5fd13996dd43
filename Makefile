# Every target does its own set-up; `make help` lists them.
.DEFAULT_GOAL := help
BIN := .venv/bin
PYTEST = $(BIN)/python -m pytest $(PYTEST_ARGS)
# Two processes, each with servers of its own: most of the time one waits. WORKERS=0 runs all in one.
WORKERS = 2

.PHONY: help install demo test test-unit test-integration test-e2e test-lab test-crash test-histories \
	lab crashes histories yarn bench check lock

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

install: ## set-up alone: virtual environment, locked packages, Java, Kafka's jars
	@.ci/install

demo: install ## days of real flights with planted faults: found, repaired, proven (DEMO_ARGS="--days 3")
	@$(BIN)/makewhole demo $(DEMO_ARGS)

test: test-unit test-integration test-e2e test-lab test-crash test-histories ## all tests

test-unit: install ## no I/O, under a minute
	$(PYTEST) -m unit -n $(WORKERS) tests/unit

test-integration: install ## a real Kafka, PostgreSQL and Spark
	$(PYTEST) -m integration -n $(WORKERS) --dist loadfile --no-loadscope-reorder tests/integration

test-e2e: install ## DAGs in a real Airflow
	$(PYTEST) -m e2e tests/e2e

test-lab: install ## the faults of the lab that every change runs
	$(PYTEST) -m lab -n $(WORKERS) tests/lab --lab-rows short

test-crash: install ## the crash points that every change runs
	$(PYTEST) -m crash tests/crash --crash-points short

test-histories: install ## the dozen random histories that every change runs
	$(PYTEST) -m histories -n $(WORKERS) tests/histories

lab: install ## all faults on a real cluster, docs/faults.md made of them (LAB_ARGS="--lab-rows 6,9 --lab-seeds 10")
	$(PYTEST) -m lab tests/lab --lab-results docs/faults.json $(LAB_ARGS)
	$(BIN)/python -m tests.lab.report

crashes: install ## compensation killed, stopped, cut off at every call, and again in recovery; docs/crashes.md (CRASH_ARGS="-k kafka")
	$(PYTEST) -m crash tests/crash --crash-results docs/crashes.json $(CRASH_ARGS)
	$(BIN)/python -m tests.crash.report

histories: install ## random histories, each answer held to a model (HISTORIES_ARGS="--histories 1000 --seed 1", "--seed 7 --shrink")
	$(PYTEST) -m histories tests/histories $(HISTORIES_ARGS)

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

lock: install ## make the locks anew from what is wanted; pins change only where they must
	$(BIN)/uv pip compile pyproject.toml --group dev $(LOCKED) --output-file .ci/requirements.lock
	$(BIN)/uv pip compile bench/datacompy.in $(LOCKED) --output-file bench/datacompy.lock
