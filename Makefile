# Sluice on one machine. `make help` lists what there is; `make up` is the beginning.

PORT ?= 20000
CLUSTERS ?= 1
# A Python the product supports; 3.12 first, because every part has a wheel for it.
PYTHON ?= $(shell for p in python3.12 python3.11 python3.13 python3; do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && { echo "$$p"; exit; }; \
	done; echo python3)

# Where a stack on PORT says what it is.
STACK = $(if $(filter 20000,$(PORT)),var/stack.json,var/stack-$(PORT)/stack.json)

BOOTSTRAP = $(PYTHON) -I controlplane/stack/bootstrap.py
RUN = .venv/bin/python
# Tests know nothing of the caller's stack: what points at real stores is taken away.
ISOLATED = env -u METRICS_URL -u DATABASE_URL -u REDIS_URL -u ZOOKEEPER_HOSTS -u SPARK_MASTER

MINUTES ?= 30
TARGET ?= decoders

.PHONY: help up demo bench cold mirror lake partitions wheel crash conformance clients differential denials leaks simulate fuzz stalls killed mutation planted nightly test screenshots chaos lint pins venv venv-develop clean

help:  ## this list
	@echo "make up [PORT=20000]   the whole stack on this machine; ctrl-C stops it, a second one resumes   (CLUSTERS=2: two physical clusters)"
	@echo "make demo [PORT=…]     shows tenants, quota and fail-over on the running stack"
	@echo "make bench             our brokers and Apache Kafka in alternation   (ARGS=\"--sections throughput --alone\")"
	@echo "make cold              what a tenant that reads 10 GB of old data costs its neighbours   (ARGS=\"--gigabytes 1\")"
	@echo "make mirror            a topic copied between Apache Kafka and ours, killed, beside MirrorMaker 2   (ARGS=\"--gigabytes 10 --kills 20 --directory var\")"
	@echo "make lake              a topic loaded into a Delta table, killed and compared, beside a consumer and the disk   (ARGS=\"--gigabytes 10 --kills 20\")"
	@echo "make partitions        what 10,000 idle partitions cost: start, memory, descriptors, ticks"
	@echo "make fuzz              fuzzes TARGET=decoders|connection|proxy|sasl|tls for MINUTES=30; var/reports/fuzz.json   (ARGS=\"--planted beyond\")"
	@echo "make stalls            the largest legal requests, beside a victim; var/reports/stalls.json   (ARGS=\"--quick\")"
	@echo "make killed            the way from __usage to bills with everything killed under it, compared to the byte   (ARGS=\"--rounds 6 --only leader,worker\")"
	@echo "make simulate          whole clusters on a virtual clock under faults   (SEEDS=1000; stopped, the same again goes on)"
	@echo "make conformance       other people's test suites against our brokers   (ARGS=\"kafkajs --door tenant\" for some)"
	@echo "make clients           others' clients by every security and mechanism, logins again included   (ARGS=\"--client java --row ssl\")"
	@echo "make differential      the same requests to our broker and to Apache Kafka, answers compared"
	@echo "make denials           what whoever lacks a right is told, by us and by Apache Kafka's AclAuthorizer   (ARGS=\"--api FETCH\")"
	@echo "make leaks             what another tenant's things are answered with, and what does not exist: of every field   (ARGS=\"--api FETCH\")"
	@echo "make crash             stops a log's writer after every call and opens what it left   (ARGS=\"--seeds 8 --every 4\")"
	@echo "make test              all tests, unit and integration   (ARGS=\"-k word\" for some)"
	@echo "make screenshots       pictures of every console page, to be looked at; var/screenshots   (ARGS=\"-k phone\")"
	@echo "make chaos             real brokers under faults   (ROUNDS=200 SECONDS=30 SEED=7 FAULTS=leader,pause)"
	@echo "make mutation          makes the pure packages wrong, one place at a time: do tests notice?   (ARGS=\"quota --sample 0\")"
	@echo "make planted           plants holes in security, one at a time: do tests find them?   (ARGS=\"authzid zones\" for some)"
	@echo "make nightly           all of these that find bugs, 110 minutes; goes on where it was   (ARGS=\"--minutes 20\", ARGS=\"kills\")"
	@echo "make wheel             sluice-clients: the clients as a wheel of their own; var/wheels"
	@echo "make lint              style, types, import rules"
	@echo "make pins              renews the pinned requirements from requirements/*.in (needs uv)"
	@echo "make clean             removes caches; .venv and var/ stay"

venv:
	@$(BOOTSTRAP) product

venv-develop:
	@$(BOOTSTRAP) develop

up:
	@$(BOOTSTRAP) product $(PORT) $(CLUSTERS)
	@exec $(RUN) manage.py up --port $(PORT) --clusters $(CLUSTERS)

demo: venv-develop
	@SLUICE_STACK=$${SLUICE_STACK:-$(STACK)} exec $(RUN) -m tests.demo $(ARGS)

crash: venv-develop
	@exec $(RUN) -m tests.crashpoints $(ARGS)

bench: venv-develop
	@exec $(RUN) -m tests.benchmarks $(ARGS)

cold: venv-develop
	@exec $(RUN) -m tests.benchmarks.cold $(ARGS)

wheel:
	@$(PYTHON) -m wheels.build $(ARGS)

mirror: venv-develop
	@$(ISOLATED) $(RUN) -m tests.benchmarks.mirror $(ARGS)

lake: venv-develop
	@$(ISOLATED) $(RUN) -m tests.benchmarks.lake $(ARGS)

partitions: venv-develop
	@exec $(RUN) -m tests.benchmarks.partitions $(ARGS)

fuzz: venv-develop
	@exec $(RUN) -m tests.fuzz $(TARGET) --minutes $(MINUTES) $(ARGS)

simulate: venv-develop
	@exec $(RUN) -m tests.simulation --seeds $(or $(SEEDS),200) $(ARGS)

stalls: venv-develop
	@$(ISOLATED) $(RUN) -m tests.stalls $(ARGS)

killed: venv-develop
	@$(ISOLATED) $(RUN) -m tests.killed $(ARGS)

conformance: venv-develop
	@$(ISOLATED) $(RUN) -m tests.conformance $(ARGS)

clients: venv-develop
	@$(ISOLATED) $(RUN) -m tests.clients $(ARGS)

differential: venv-develop
	@$(ISOLATED) $(RUN) -m tests.differential $(ARGS)

denials: venv-develop
	@$(ISOLATED) $(RUN) -m tests.differential.denials $(ARGS)

leaks: venv-develop
	@$(ISOLATED) $(RUN) -m tests.leaks $(ARGS)

test: venv-develop
	$(ISOLATED) $(RUN) -m pytest -m "not long" --numprocesses 2 --dist worksteal $(ARGS)

screenshots: venv-develop
	$(ISOLATED) $(RUN) -m pytest tests/browser/screenshots.py $(ARGS)

chaos: venv-develop
	$(ISOLATED) $(RUN) -m tests.chaos $(if $(ROUNDS),--rounds $(ROUNDS)) --seconds $(or $(SECONDS),30) \
		$(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--faults $(FAULTS)) $(ARGS)

mutation: venv-develop
	@$(ISOLATED) $(RUN) -m tests.mutation $(ARGS)

planted: venv-develop
	@$(ISOLATED) $(RUN) -m tests.planted $(ARGS)

nightly: venv-develop
	@$(ISOLATED) $(RUN) -m tests.nightly $(ARGS)

lint: venv-develop
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	.venv/bin/lint-imports --no-cache

pins:
	uv pip compile --quiet --no-header --generate-hashes --universal --python-version 3.11 --upgrade \
		requirements/product.in --output-file requirements/product.txt
	uv pip compile --quiet --no-header --generate-hashes --no-deps --upgrade \
		--python-version 3.12 --python-platform x86_64-manylinux2014 --only-binary :all: \
		requirements/redis.in --output-file requirements/redis.txt
	uv pip compile --quiet --no-header --generate-hashes --universal --python-version 3.11 --upgrade \
		--constraint requirements/product.txt requirements/develop.in --output-file requirements/develop.txt
	uv pip compile --quiet --no-header --generate-hashes --universal --python-version 3.11 --upgrade \
		--constraint requirements/develop.txt requirements/terraform.in --output-file requirements/terraform.txt

clean:
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.venv/*' -not -path './var/*' -prune -exec rm -rf {} +
