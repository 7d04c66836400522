# SPDX-License-Identifier: Apache-2.0
# A thin front over Meson. `make deps`, `demo`, `test` and `evaluate` install what they need (Debian,
# Ubuntu); the other targets expect it there.
BUILD  ?= build
PREFIX ?= /usr/local
SOAK_SECONDS ?= 3600
SOAK_WALKS ?= 50
SOAK_SLURM_CRASHES ?= 300
SOAK_SLURM_SUSPEND_CRASHES ?= 500

.PHONY: all with-tests demo demo-slurm try test check soak test-gpu bench evaluate fuzz lint format install uninstall dist deb deps clean

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	meson setup $(BUILD)

demo:
	scripts/install-deps build
	$(MAKE) all
	scripts/demo

# The same on two Slurm clusters of 16 emulated GPUs each, without and with colloc; then two jobs whose
# memory does not fit together. Needs root.
demo-slurm:
	scripts/install-deps build slurm
	$(MAKE) all
	scripts/demo-slurm

# A shell with four emulated GPUs.
try: all
	@BUILD=$(BUILD) scripts/try

test:
	scripts/install-deps build test report
	scripts/test

# The build with the tests, which `make` leaves out: they are half of the files.
with-tests: $(BUILD)/build.ninja
	meson configure $(BUILD) -Dtests=enabled
	ninja -C $(BUILD) || { echo "The tests cannot be built: 'make deps' installs what they need" >&2; exit 1; }

# The plain build's tests, without installing anything; compiler warnings are no errors here.
# TESTS chooses some of them: make check TESTS="core-queue core-task". The time limits only end what
# hangs, so a busy machine gets five times of them.
check: with-tests
	meson test -C $(BUILD) --no-rebuild --print-errorlogs --timeout-multiplier 5 $(TESTS)

# The fault campaigns with random seeds, which they print; as root they include power cuts, crashes of
# a Slurm cluster, the tests with the Slurm of Debian 13, and those of the Debian packages and the container. And tests
# that take too long for `make test`.
soak: with-tests
	for seed in $$(shuf --input-range=1000-4000000000 --head-count=$(SOAK_WALKS)); do \
	    echo "core-walk: COLLOC_WALK_SEED=$$seed"; \
	    COLLOC_WALK_SEED=$$seed $(BUILD)/tests/unit/core/test-core-walk || exit 1; done
	seed=$$(shuf --input-range=1000-4000000000 --head-count=1); echo "core-full_gpus: COLLOC_CROWD_SEED=$$seed"; \
	    COLLOC_CROWDS=20000 COLLOC_CROWD_SEED=$$seed $(BUILD)/tests/unit/core/test-core-full_gpus
	seed=$$(shuf --input-range=1000-4000000000 --head-count=1); echo "preload_step_threads: COLLOC_THREADED_SEED=$$seed"; \
	    COLLOC_THREADED_TRAININGS=2000 COLLOC_THREADED_SEED=$$seed $(BUILD)/tests/unit/preload/test_preload_step_threads
	COLLOC_BUILD=$(BUILD) python3 tests/faults/campaign.py --seed=0 --seconds=$(SOAK_SECONDS)
	COLLOC_BUILD=$(BUILD) COLLOC_SUSPEND_KILLS=200 COLLOC_SUSPEND_SEED=$$$$ python3 tests/system/test_suspend.py Kills KillsOfSeveral
	COLLOC_BUILD=$(BUILD) COLLOC_SUSPEND_KILLS=400 python3 tests/system/test_suspend.py \
	    Carried.test_kills Carried.test_killed_tasks CarriedClients.test_kills CarriedClients.test_killed_tasks
	COLLOC_BUILD=$(BUILD) COLLOC_FULL_ROUNDS=10 COLLOC_FULL_SEED=$$$$ python3 tests/system/test_full_gpu.py
	COLLOC_BUILD=$(BUILD) COLLOC_PHASE_KILLS=12 python3 tests/system/test_kills.py
	COLLOC_BUILD=$(BUILD) COLLOC_RANK_KILLS=20 python3 tests/system/test_ranks.py Kills KilledClients
	COLLOC_BUILD=$(BUILD) COLLOC_LIES=200 python3 tests/system/test_page_lies.py
	COLLOC_BUILD=$(BUILD) COLLOC_CARRIER_KILLS=200 python3 tests/system/test_carrier.py Phases
	COLLOC_BUILD=$(BUILD) COLLOC_SOAK=1 python3 tests/system/test_calibrate.py
	COLLOC_BUILD=$(BUILD) COLLOC_SOAK=1 python3 tests/system/test_array_rate.py
	COLLOC_BUILD=$(BUILD) COLLOC_SOAK=1 python3 tests/system/test_slurm_login.py Login.test_page_in_a_browser
	python3 tests/faults/slurm_forgets.py
	COLLOC_BUILD=$(BUILD) python3 tests/faults/slurm_campaign.py --crashes=$(SOAK_SLURM_CRASHES)
	COLLOC_BUILD=$(BUILD) python3 tests/faults/slurm_suspend_campaign.py --crashes=$(SOAK_SLURM_SUSPEND_CRASHES)
	COLLOC_BUILD=$(BUILD) COLLOC_SOAK=1 python3 tests/system/test_slurm.py
	BUILD=$(BUILD) scripts/test-slurm
	COLLOC_BUILD=$(BUILD) COLLOC_SOAK=1 python3 tests/system/test_hostile.py
	BUILD=$(BUILD) scripts/test-vm
	scripts/make-deb && scripts/test-packages && scripts/test-container
	COLLOC_BUILD=$(BUILD) python3 tests/system/test_demo_slurm.py

# Needs an NVIDIA GPU.
test-gpu:
	scripts/bundle build-bundle/programs
	scripts/test-gpu build-bundle/programs

bench: all
	scripts/bench $(BUILD)

evaluate: all
	scripts/install-deps report
	scripts/evaluate

fuzz:
	scripts/fuzz --seconds 600

lint:
	scripts/lint

format:
	scripts/lint --format

install: all
	meson configure $(BUILD) --prefix $(PREFIX)
	meson install -C $(BUILD)

# With the PREFIX and DESTDIR of the installation.
uninstall: $(BUILD)/build.ninja
	meson configure $(BUILD) --prefix $(PREFIX)
	ninja -C $(BUILD) build.ninja
	scripts/uninstall $(BUILD)

# The source of the last commit as build/meson-dist/colloc-VERSION.tar.xz, with its checksum.
dist: $(BUILD)/build.ninja
	meson dist -C $(BUILD) --no-tests

# Debian packages for this distribution, in build-deb/packages.
deb:
	scripts/install-deps build deb
	scripts/make-deb

deps:
	scripts/install-deps build test report

clean:
	rm -rf build build-*
