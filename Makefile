# make demo, make test: both set everything up first. See README.md.

VENV := .venv
PY   := $(VENV)/bin/python
STAMP := $(VENV)/.installed
TEST_STAMP := $(VENV)/.tests-installed
BENCH_STAMP := $(VENV)/.bench-installed
HEADERS := build/headers
PYTHON ?= python3

# What the installed package is made from: a change reinstalls it.
SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE $(shell find offload targets runtime_c -type f \
             \( -name '*.py' -o -name '*.c' -o -name '*.h' -o -name '*.def' -o -name '*.map' -o -name '*.cpp' \
                -o -name 'CMakeLists.txt' -o -name '*.cmake' -o -name 'py.typed' \))

.PHONY: demo test install system lint bench device-bundle wheels check-wheels clean

demo: install
	$(VENV)/bin/python scripts/demo.py

test: $(TEST_STAMP) $(HEADERS)
	$(VENV)/bin/pytest -n auto --maxprocesses 8 tests

install: $(STAMP)

system:
	sh scripts/setup_system.sh

$(STAMP): $(SOURCES) scripts/setup_system.sh
	sh scripts/setup_system.sh
	sh scripts/setup_venv.sh $(VENV) $(PYTHON) cuda
	touch $@

# What tests alone need, with the vendors' libraries that the runtime is compared with, is much to download.
$(TEST_STAMP): $(STAMP)
	sh scripts/setup_system.sh test
	sh scripts/setup_venv.sh $(VENV) $(PYTHON) cuda,test
	touch $@

$(HEADERS): scripts/setup_headers.sh
	sh scripts/setup_headers.sh $@

lint: install
	$(VENV)/bin/pip install --quiet --disable-pip-version-check ruff mypy
	$(VENV)/bin/ruff check .
	cd / && $(CURDIR)/$(VENV)/bin/mypy --config-file $(CURDIR)/pyproject.toml -p offload

# A missed goal is an exit code: each benchmark runs all the same.
bench: $(BENCH_STAMP)
	missed=0; for name in build assembling runtime host call packages jax_programs; do $(VENV)/bin/python bench/$$name.py --save || missed=1; done; exit $$missed

# One folder for a machine with a GPU and without a compiler or a network: the suite, compiled here.
device-bundle: $(TEST_STAMP)
	$(VENV)/bin/python scripts/device_bundle.py build/device-bundle

# What the benchmarks compare with, which nothing else needs.
$(BENCH_STAMP): $(STAMP)
	sh scripts/setup_system.sh bench
	sh scripts/setup_venv.sh $(VENV) $(PYTHON) cuda,bench
	touch $@

# The distributions, in dist/. Several Pythons: make wheels WHEEL_PYTHONS="python3.11 python3.12"
WHEEL_PYTHONS ?= $(PYTHON)
wheels: system
	sh scripts/make_wheels.sh $(WHEEL_PYTHONS)

# Installs them in a Debian that has no compiler and no LLVM. Needs root.
check-wheels:
	sh scripts/check_wheels.sh dist

clean:
	rm -rf $(VENV) build dist
