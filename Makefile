# The only entry point: `make` alone says what there is.
.DEFAULT_GOAL := help
.PHONY: help requirements setup ready check test demo serve fix bench sim blackbox screens openapi functions lock clean
PY := .venv/bin/python
PYTEST := .venv/bin/pytest
# So many processes run tests, for a machine of two cores; on another one: make test WORKERS=4
WORKERS ?= 2
SPREAD = -n $(WORKERS) --dist worksteal
MOST = not alone and not bench and not sim and not screens
OLDEST = VOELGOED_PG_CONFIG=/usr/lib/postgresql/15/bin/pg_config
# What can differ between versions of PostgreSQL: statements, plans, locks, the journal, jobs, roles, error codes.
STATEMENTS = tests/accounts tests/arch/test_queries.py tests/events tests/holds tests/jobs tests/journal tests/realtime \
  tests/seating tests/security/test_tenancy.py tests/test_db.py tests/test_functions.py tests/test_schema.py \
  tests/test_sqlstates.py tests/ticketing --ignore tests/holds/boundaries --ignore tests/holds/planted
ARGS ?=
# Compiled once and kept, whatever the machine says: tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make the environment, the web bundle and what the tests need (does nothing when nothing changed)
	@python3 scripts/setup.py dev

ready:
	@python3 scripts/setup.py run

demo: ready ## Run it with demonstration data, and print the address (ARGS="--port 0")
	@.venv/bin/voelgoed demo $(ARGS)

serve: ready ## Run an installation (settings: VOELGOED_..., see docs/operations/settings.md)
	@.venv/bin/voelgoed serve $(ARGS)

check: setup ## Lint, types, import rules, migrations, web types
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/deptry .
	.venv/bin/squawk migrations/*.sql
	$(PY) scripts/requirements.py
	cd web && PATH="$(CURDIR)/.venv/bin:$$PATH" npm run --silent check

test: setup ## Everything, on real PostgreSQL, real Valkey and a real browser
	cd web && PATH="$(CURDIR)/.venv/bin:$$PATH" npm test --silent
	$(PYTEST) $(SPREAD) -m "$(MOST)" $(ARGS)
	# By themselves: what compares two times, opens a thousand connections or counts what a loaded machine would refuse.
	$(PYTEST) tests/holds tests/cli/test_bench.py tests/faults/test_signing_in.py tests/faults/test_tiers.py tests/browser/test_map.py -m alone $(ARGS)
	# Once more on the oldest PostgreSQL: what can differ there.
	$(OLDEST) $(PYTEST) $(SPREAD) $(STATEMENTS) -m "postgresql and $(MOST)" $(ARGS)

fix: setup ## Format, and mend what can be mended by itself
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

bench: setup ## Print what the ground costs (figures of one machine, to be compared within one run)
	$(PYTEST) tests/bench -m bench -s -n 0 $(ARGS)

sim: setup ## Kill and hurt at random for a while and audit what is left (SEED=1 STEPS=20 SECONDS=20 CYCLES=5)
	$(PYTEST) tests/sim -m sim -s -n 0 $(ARGS)
	CYCLES=$${CYCLES:-5} $(PYTEST) tests/faults/test_registry_kills.py -s -n 0 $(ARGS)

blackbox: setup ## Sell over HTTP under faults of every kind and check every answer (MINUTES=10 SEED=1)
	$(PY) -m tests.blackbox --minutes $${MINUTES:-10} --seed $${SEED:-1} $(ARGS)

screens: setup ## Take pictures of every screen into docs/screens
	$(PYTEST) tests/browser/test_screens.py -m screens -s -n 0 $(ARGS)

openapi: setup ## Write what is made from the code: openapi.json, docs/permissions.md, docs/states, the web's types
	$(PY) -m voelgoed.http.contract .
	cd web && PATH="$(CURDIR)/.venv/bin:$$PATH" npm run --silent api

functions: setup ## Give changed SQL functions or a new migration the next version (src/voelgoed/functions.lock)
	@$(PY) scripts/functions.py

lock: setup ## Lock the dependencies anew, with hashes
	@python3 scripts/lock.py

requirements: setup ## Count the requirement rows that tests prove, by area
	$(PY) scripts/requirements.py

clean: ## Remove what `make setup` made
	rm -rf .venv web/node_modules src/voelgoed/http/dist
