# inferswarm. `make step7` on a fresh machine sets everything up and runs the five-endpoint study.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STUDY  ?= quick
ARGS   ?=
SET_UP := $(VENV)/.set-up
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Bytecode is left to the first import: most is never used.
PIP := $(BIN)/python -m pip install --no-compile --quiet
BY_HASH := --require-hashes --no-deps -r requirements.lock
SUPPLY := $(VENV)/supply/.set-up

.DEFAULT_GOAL := help
.PHONY: help setup step7 web servers drills check soak lock licences audit clean bench gpu-pack pictures mutants test-fresh \
  image quick quick-reports quick-patched quick-unpatched test test-patched test-studies test-unpatched test-reports \
  test-slow slow-soak slow-others slow-links slow-alone slow-studies slow-readme slow-patched slow-unpatched

help: ## show this help
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /|/' | \
	  while IFS='|' read -r name text; do printf '  make %-10s %s\n' "$$name" "$$text"; done

setup: $(SET_UP) ## create .venv with everything that requirements.lock pins, by its hashes

# Targets that start tritonserver fail before anything is installed if it cannot run here. A PYTHON that was named is
# taken or refused; without one, whichever is there and can run all.
step7 web servers drills soak test test-slow bench: EMBEDDED := --embedded
CHOOSE = $(PYTHON) -m server.interpreter $(if $(filter file,$(origin PYTHON)),,--alone) $(EMBEDDED) -- $(ARGS)

# By hash first, then what is pinned by version alone: docs/supply.md says why. Nothing else may come with those two
# but what their build asks for.
$(SET_UP): requirements.lock requirements-server.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 8) and "inferswarm needs Python 3.11 to 3.13")'
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || \
	  { python=$$($(CHOOSE)) && set -x && "$$python" -m venv $(VENV); }
	@# What installs the others first.
	sed -n -e '/^pip==/,/^    #/p' -e '/^uv==/,/^    #/p' requirements.lock > $(VENV)/first.lock
	$(PIP) --require-hashes --no-deps -r $(VENV)/first.lock
	@# uv takes a fifth of pip's time, but knows nothing of an index that pip was told of.
	@if $(BIN)/python -m pip config list | grep -E '[.](index-url|no-index)' > /dev/null || \
	  ! (set -x; $(BIN)/uv pip install --quiet --system-certs --python $(BIN)/python $(BY_HASH)); then (set -x; $(PIP) $(BY_HASH)); fi
	$(PIP) $$(grep -E '^torch(vision)?==' requirements-server.txt)
	@# Where no import may write bytecode, each would make it again.
	@[ -z "$$PYTHONDONTWRITEBYTECODE" ] || $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
	@# Of nvidia-pytriton only its tritonserver is used, and so not all that it asks for is there.
	@! $(BIN)/python -m pip check | grep -v -e '^nvidia-pytriton ' -e '^No broken'
	@# The checkout's own packages, wherever a command is run from, and `inferswarm`.
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

step7: setup ## run the five-endpoint study on embedded servers (STUDY=quick or full, ARGS=more options)
	$(BIN)/locust -f locustfiles/step7.py --headless --study $(STUDY) $(ARGS)

web: setup ## the same study in the web UI: plan and start it at http://127.0.0.1:8089/inferswarm
	$(BIN)/locust -f locustfiles/step7.py --web-host 127.0.0.1 --study $(STUDY) $(ARGS)

servers: setup ## start the embedded servers and keep them up until Ctrl-C
	$(BIN)/inferswarm up

drills: setup ## break things in the middle of studies, and see what these say (ARGS='-k killed')
	$(PYTEST) tests/drills $(ARGS)

# Three kinds of tests: `system` start servers, studies or a browser; `slow` take long, or need cores, ports or the
# network for themselves; most are neither. Two processes share them, for most wait more than they work: what is tested
# with servers must not be in one process with Locust, which patches sockets and threads. Bytecode is kept whatever the
# environment says: else each process, and there are hundreds, would compile the suite and its tests again.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest
TWO = MAKEFLAGS= $(MAKE) --jobs=2 --output-sync=target --no-print-directory $(addsuffix .part,$(1))
# Each part is run whatever became of the others, and those that failed are named at the end.
FAILED := $(VENV)/failed-parts
NAME_FAILED = test ! -e $(FAILED) || { echo "failed:$$(cat $(FAILED)) (see above)" >&2; exit 1; }
UNPATCHED := tests/server tests/reports tests/benchmarks/generating
STUDIES := tests/locustfiles tests/readme
LINKS := tests/swarm/links
PATCHED := tests $(addprefix --ignore=,$(UNPATCHED) $(STUDIES) $(LINKS))
ALONE := tests/locustfiles/test_real.py tests/locustfiles/test_trace.py \
  tests/readme/test_make.py tests/readme/test_networks.py

# Of the studies' slow tests these go with the README's, so that both parts take as long.
MOVED := $(addprefix tests/locustfiles/,test_otlp.py test_grafana.py test_exporters.py test_any_endpoint.py)

%.part:
	@$(MAKE) --no-print-directory $* || printf ' %s' $* >> $(FAILED)

quick: setup ## the tests that need no server, no link and no browser (a minute and a half)
	@rm -f $(FAILED)
	@$(call TWO,quick-reports quick-patched quick-unpatched)
	@$(NAME_FAILED)

quick-reports quick-patched quick-unpatched: QUICK := $(PYTEST) -q -m "not system and not slow"
quick-reports:
	$(QUICK) tests/reports

quick-patched:
	$(QUICK) $(PATCHED) --ignore=tests/security

quick-unpatched:
	$(QUICK) $(filter-out tests/reports,$(UNPATCHED))

test: setup ## what a change needs, real servers included (8 minutes)
	@rm -f $(FAILED)
	@$(call TWO,test-patched test-studies test-unpatched test-reports)
	@$(NAME_FAILED)

test-unpatched:
	$(PYTEST) -m "not slow" $(filter-out tests/reports,$(UNPATCHED))

test-reports:
	$(PYTEST) -m "not slow" tests/reports

test-patched:
	$(PYTEST) -m "not slow" $(PATCHED)

test-studies:
	$(PYTEST) -m "not slow" $(STUDIES)

# The soak takes a fifth of a core beside the others: it judges memory, descriptors and counts, which do not mind, and
# no times, which would. Links are measured, in a process that Locust has not patched, and so nothing else runs beside.
test-slow: setup ## the rest: long studies, drills, a soak, emulated links, the README's commands (18 minutes)
	@rm -f $(FAILED)
	@$(call TWO,slow-soak slow-others)
	@$(call TWO,slow-links)
	@$(call TWO,slow-alone)
	@$(NAME_FAILED)

SLOW ?= slow-studies slow-readme slow-patched slow-unpatched
slow-soak:
	$(BIN)/python -m benchmarks.soak --quick

slow-others:
	@$(call TWO,$(SLOW))

slow-links:
	$(PYTEST) $(LINKS) --confcutdir=$(LINKS)

slow-alone:
	$(PYTEST) $(ALONE)

slow-studies:
	$(PYTEST) -m slow tests/locustfiles $(addprefix --ignore=,$(ALONE) $(MOVED))

slow-readme:
	$(PYTEST) -m slow tests/readme tests/package $(MOVED) $(addprefix --ignore=,$(ALONE))

slow-patched:
	$(PYTEST) -m slow $(PATCHED) --ignore=tests/package

slow-unpatched:
	$(PYTEST) -m slow $(UNPATCHED)

gpu-pack: setup ## what a GPU host without a network lacks, in parts: docs/gpu_host.md (ARGS=--python 3.13)
	$(BIN)/python -m swarm.gpu_pack.build $(ARGS)

pictures: setup ## the pictures of README.md and docs/report.md, of a study in results/ (ARGS=results/NAME)
	$(BIN)/python docs/pictures/make.py $(ARGS)

bench: setup ## every benchmark that has a bound, and which of them broke (ARGS=NAME… for some)
	$(BIN)/python -m benchmarks $(ARGS)

test-fresh: ## in bare Debian 12 and 13 (root, debootstrap): clone, step 7, unit tests (ARGS=--suites trixie)
	$(PYTHON) -m tests.fresh $(ARGS)

image: setup ## build the client's image, and run a study in it (root, buildah, debootstrap): docs/kubernetes.md
	$(BIN)/python -m tests.image $(ARGS)

check: setup ## formatting, lint, types, scripts; Triton's configurations, Dockerfiles, manifests and CI jobs by schema
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/shellcheck .ci/run examples/ci/in_turns.sh
	$(BIN)/kubernetes-validate --strict --quiet -k 1.29 -k 1.37 \
	  $(filter-out %/kustomization.yaml %/locusttest.yaml,\
	  $(wildcard examples/k8s/*.yaml examples/locust-operator/*.yaml server/k8s/base/*.yaml))
	$(BIN)/check-jsonschema --schemafile tests/examples/locust_operator/locusttest-v2.json \
	  examples/locust-operator/locusttest.yaml
	$(BIN)/python -m tests.server.triton.check_configs triton_repo benchmarks/strange_servers/triton
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec server/compose.yaml server/compose.sweep.yaml
	$(BIN)/hadolint server/Dockerfile server/Dockerfile.cuda server/Dockerfile.triton examples/k8s/Containerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows examples/ci/github-actions.yml examples/ci/nightly.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.gitlab-ci --data-transform gitlab-ci examples/ci/gitlab-ci.yml

mutants: setup ## plant faults in the modules that make numbers: do the tests near them notice? (a sample, an hour; ARGS=gates)
	$(BIN)/python -m tests.mutants $(ARGS)

soak: setup ## an hour of the null model: does memory, descriptors or a percentile grow? (ARGS=--quick: two minutes)
	$(BIN)/python -m benchmarks.soak $(ARGS)

# An environment of its own: what looks after the lock need not agree with what is locked.
$(SUPPLY): requirements-supply.lock | $(SET_UP)
	$(BIN)/python -m venv $(VENV)/supply
	$(VENV)/supply/bin/python -m pip install --quiet --require-hashes --no-deps -r requirements-supply.lock
	@touch $@

# torch and torchvision are pinned by version alone: docs/supply.md says why.
COMPILE := $(BIN)/uv pip compile --quiet --custom-compile-command 'make lock' --universal --python-version 3.11 \
  --generate-hashes --fork-strategy fewest --no-emit-index-url --no-emit-package torch --no-emit-package torchvision
# uv keeps the versions of the file that it writes. A lock that has not changed keeps its time, so that make installs
# nothing again.
LOCK = cp $(1) $(VENV)/made.lock && $(COMPILE) $(ARGS) --output-file $(VENV)/made.lock $(2) && \
  { cmp -s $(VENV)/made.lock $(1) || cp $(VENV)/made.lock $(1); }

lock: setup ## pin what the requirements lead to, with hashes (ARGS=--upgrade takes the newest)
	$(call LOCK,requirements.lock,requirements-dev.txt)
	$(call LOCK,requirements-client.lock,requirements-client.txt --constraints requirements.lock)
	$(call LOCK,requirements-supply.lock,requirements-supply.txt)

# NAME==VERSION, a line each, of all that is pinned.
PINS := { sed -nE 's/^([a-z0-9.-]+==[^ ]+).*/\1/p' requirements.lock; grep -E '^torch(vision)?==' requirements-server.txt; }

licences: $(SUPPLY) ## rewrite the table of LICENSES.md from what is installed
	$(VENV)/supply/bin/pip-licenses --python $(BIN)/python --with-system --order license --format markdown \
	  --packages $$($(PINS) | sed 's/==.*//') > $(VENV)/table.md
	sed '/^## All/{G;q;}' LICENSES.md > $(VENV)/LICENSES.md
	@# No padding, which one long name would change everywhere; a local build's version is that which it was built from.
	sed -E 's/  +/ /g; s/--+/---/g; s/\+[a-z0-9.]+ / /' $(VENV)/table.md >> $(VENV)/LICENSES.md
	mv $(VENV)/LICENSES.md LICENSES.md

# By itself pip-audit is content with packages that it could not look up; --strict is not, but ends at the first one,
# and so what is known of the others is told before.
audit: $(SUPPLY) ## look the locked packages up in a database of vulnerabilities
	$(PINS) > $(VENV)/pins.txt
	$(PIP_AUDIT) $(ARGS)
	$(PIP_AUDIT) --strict $(ARGS)
audit: PIP_AUDIT := $(VENV)/supply/bin/pip-audit --requirement $(VENV)/pins.txt --no-deps --disable-pip --progress-spinner off

clean: ## remove built models and caches; results stay
	@# What servers build, by its names: the folder may be your own.
	cache=$$($(PYTHON) -m server.cache) && cd "$$cache" && rm -rf triton openvino tensorrt inductor libpython weights logs strangers
	rm -rf .cache .mypy_cache .ruff_cache .pytest_cache
	rm -rf triton_repo/weights
