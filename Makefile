# Everything that a developer does, as one command each. `make` alone lists them.
# A fresh machine needs Python 3.11 or newer; with a C compiler the hot rooms are compiled, without one they run as Python.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEPENDENCIES := $(VENV)/.dependencies
INSTALLED := $(VENV)/.installed
WHEELS := build/wheels
SOURCES := $(shell find src -name '*.py' -not -path '*/__pycache__/*' 2>/dev/null)
WORKERS ?= 2
FRANZ := .cache/interop/franz
LESSON := .cache/interop/lesson
KAFKAJS := .cache/interop/js/node_modules/.package-lock.json
PROZESS := .cache/interop/prozess/node_modules/.package-lock.json
JAFKA := .cache/interop/jafka/classes/JafkaClient.class
KAFKA := .cache/kafka-4.4.0
JAVA := .cache/interop/java/WordCount.class
CONNECT := .cache/interop/connect/.complete
OLDEST_JAVA := .cache/interop/oldest-java/.complete
NODE_RDKAFKA := .cache/interop/node-rdkafka/node_modules/.package-lock.json
KAFKA_PYTHON := .cache/interop/kafka-python/kafka_python-3.0.12/PKG-INFO
FUZZ_SECONDS ?= 5
CRASH_SECONDS ?= 120
MINUTES ?= 10
SERVE ?=

.DEFAULT_GOAL := help
.PHONY: help serve build test test-compiled test-pure interop suites fuzz lint docs bench groups gate crash soak lock clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(DEPENDENCIES): requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "ottla needs Python 3.11 or newer; set PYTHON=..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "ottla: installing what it is built and tested with into $(VENV), once"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

# --no-build-isolation: the lock file's own mypy compiles, and mypyc's cache in build/ makes the next build a short one.
$(INSTALLED): $(DEPENDENCIES) $(SOURCES) pyproject.toml setup.py
	@echo "ottla: building; with a C compiler that takes a minute or two the first time"
	@mkdir -p build && rm -rf $(WHEELS) && find build -path "build/lib*" -name "*.py" -delete
	@$(BIN)/python -m pip wheel -v --disable-pip-version-check --no-build-isolation --no-deps -w $(WHEELS) . >build/log 2>&1 || { cat build/log >&2; exit 1; }
	@grep -o 'ottla: .*building the pure Python build.*' build/log || true
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --force-reinstall $(WHEELS)/ottla-*.whl
	@$(BIN)/python -c 'from ottla._build import build_kind; print("ottla: the", build_kind(), "build is installed in $(VENV)")'
	@touch $@

build: $(INSTALLED) ## build the wheel and install it, so that .venv/bin/ottla works

serve: $(INSTALLED) ## start a broker on localhost:9092 with its data in ./ottla-data
	@$(BIN)/ottla serve $(SERVE)

test: test-compiled test-pure ## run all unit tests on both builds; needs Python only

test-compiled: $(INSTALLED)
	@if $(BIN)/python -c 'import sys; from ottla._build import build_kind; sys.exit(build_kind() != "compiled")'; then \
		echo "ottla: unit tests on the compiled build" && $(BIN)/python -m pytest -q -n $(WORKERS) --durations=10; \
	else \
		echo "ottla: no working C compiler, so there is no compiled build to test; only the pure build is tested"; \
	fi

test-pure: $(DEPENDENCIES)
	@echo "ottla: unit tests on the pure build"
	@PYTHONPATH=src $(BIN)/python -m pytest -q -n $(WORKERS) --durations=10

$(FRANZ): $(wildcard tests/interop/clients/go/*)
	@mkdir -p $(@D) && cd tests/interop/clients/go && go build -mod=readonly -o $(CURDIR)/$@ .

$(LESSON): $(wildcard tests/interop/clients/lesson/*)
	@mkdir -p $(@D) && cd tests/interop/clients/lesson && go build -o $(CURDIR)/$@ .

$(KAFKAJS): $(wildcard tests/interop/clients/js/package*.json)
	@mkdir -p .cache/interop/js && cp tests/interop/clients/js/package*.json tests/interop/clients/js/.npmrc .cache/interop/js
	@npm ci --silent --no-audit --no-fund --prefix .cache/interop/js && touch $@

$(PROZESS): $(wildcard tests/interop/clients/prozess/package*.json)
	@mkdir -p .cache/interop/prozess
	@cp tests/interop/clients/prozess/package*.json tests/interop/clients/prozess/.npmrc .cache/interop/prozess
	@npm ci --silent --no-audit --no-fund --prefix .cache/interop/prozess && touch $@

$(JAFKA): $(wildcard tests/interop/clients/jafka/*)
	@mvn -q -B -f tests/interop/clients/jafka/pom.xml dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/.cache/interop/jafka/lib
	@javac -cp ".cache/interop/jafka/lib/*" -d .cache/interop/jafka/classes tests/interop/clients/jafka/JafkaClient.java

$(KAFKA)/complete: tools/kafka-home
	@tools/kafka-home $(KAFKA) 4.4.0 && touch $@

$(JAVA): $(KAFKA)/complete $(wildcard tests/interop/clients/java/*)
	@javac -cp "$(KAFKA)/libs/*" -d $(@D) tests/interop/clients/java/*.java

$(CONNECT) $(OLDEST_JAVA): .cache/interop/%/.complete: tests/interop/clients/%/pom.xml
	@mvn -q -B -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(@D)/lib
	@touch $@

# Against the system's librdkafka where its headers are (librdkafka-dev); else npm builds the one that it brings, in minutes.
$(NODE_RDKAFKA): $(wildcard tests/interop/clients/node-rdkafka/package*.json)
	@mkdir -p .cache/interop/node-rdkafka
	@cp tests/interop/clients/node-rdkafka/package*.json tests/interop/clients/node-rdkafka/.npmrc .cache/interop/node-rdkafka
	@BUILD_LIBRDKAFKA=$(if $(wildcard /usr/include/librdkafka/rdkafka.h),0,1) JOBS=$(WORKERS) \
		npm_config_nodedir=$$(node -p 'path.resolve(process.execPath, "../..")') \
		npm ci --silent --no-audit --no-fund --prefix .cache/interop/node-rdkafka && touch $@

$(KAFKA_PYTHON): tests/interop/suites/kafka-python.lock $(DEPENDENCIES)
	@$(BIN)/python -m pip download -q --disable-pip-version-check --no-deps --no-build-isolation --no-binary kafka-python \
		--require-hashes -r $< -d .cache/interop/kafka-python
	@tar -xzf .cache/interop/kafka-python/kafka_python-3.0.12.tar.gz -C .cache/interop/kafka-python && touch $@

interop: $(INSTALLED) $(KAFKA)/complete $(FRANZ) $(LESSON) $(KAFKAJS) $(PROZESS) $(JAFKA) $(JAVA) $(CONNECT) $(OLDEST_JAVA) $(NODE_RDKAFKA) $(KAFKA_PYTHON) ## run other people's clients against the broker; needs the programs that README.md lists
	@KAFKA_HOME=$(CURDIR)/$(KAFKA) $(BIN)/python -m pytest -q -n $(WORKERS) --timeout 300 --durations=10 tests/interop
	@echo "ottla: our client and command line on Apache Kafka"
	@KAFKA_HOME=$(CURDIR)/$(KAFKA) OTTLA_INTEROP_BROKER=kafka $(BIN)/python -m pytest -q --timeout 300 tests/interop/test_our_*_on_kafka.py

suites: $(INSTALLED) $(KAFKA)/complete $(NODE_RDKAFKA) $(KAFKA_PYTHON) ## run other clients' own test suites on the broker and on Apache Kafka, which must come out alike
	@for broker in ottla kafka; do echo "ottla: suites on $$broker" && KAFKA_HOME=$(CURDIR)/$(KAFKA) OTTLA_INTEROP_BROKER=$$broker \
		$(BIN)/python -m pytest -q --timeout 600 tests/interop/suites || exit 1; done

fuzz: $(INSTALLED) ## feed damaged requests, batches and files for a minute (FUZZ_SECONDS=5 for each kind)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest -q --timeout $$(($(FUZZ_SECONDS) + 120)) tests/fuzz

lint: $(DEPENDENCIES) ## check style, types and who imports whom
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports

docs: $(DEPENDENCIES) ## make docs/reference/ from the tables in the code
	PYTHONPATH=src $(BIN)/python -m ottla.config.reference docs/reference
	PYTHONPATH=src $(BIN)/python -m ottla.dialects.kafka.reference docs/reference
	PYTHONPATH=src $(BIN)/python -m ottla.cli.reference docs/reference

bench: $(INSTALLED) ## measure beside the C floor, Apache Kafka and a peer; writes docs/performance.md
	$(BIN)/python -m benchmarks.bench --write docs/performance.md

groups: $(INSTALLED) ## measure consumer groups beside Apache Kafka (3 minutes); writes docs/performance.md
	$(BIN)/python -m benchmarks.groups --write docs/performance.md

gate: $(INSTALLED) ## check broker CPU per request and per GB against the C floor of the same run
	$(BIN)/python -m benchmarks.gate

crash: $(INSTALLED) ## kill the broker under its producers for two minutes (CRASH_SECONDS=120); nothing acknowledged may be lost
	SECONDS=$(CRASH_SECONDS) $(BIN)/python -m benchmarks.crash

soak: $(INSTALLED) ## the same for as long as one likes (MINUTES=10), then cut the power at every write, then fuzz as long
	SECONDS=$$(($(MINUTES) * 60)) $(BIN)/python -m benchmarks.crash
	SEEDS=$$(($(MINUTES) * 2)) $(BIN)/python -m tests.storage.crashes
	$(MAKE) fuzz FUZZ_SECONDS=$$(($(MINUTES) * 5))

lock: ## resolve pyproject.toml anew into the lock files
	tools/lock

clean: ## remove everything that was built; ottla-data stays
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .cache
