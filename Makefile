# SPDX-License-Identifier: BSD-3-Clause
# A thin front: the work is in scripts/, CMakePresets.json and packages.txt. `make help` lists the targets.
#   PYTHON=/usr/bin/python3.11   the interpreter that .venv is made from
#   JOBS=2                       parallel compile and test jobs (default: the number of cores)
PYTHON ?=
JOBS ?= $(shell nproc)
export PYTHON JOBS
.DEFAULT_GOAL := help
.PHONY: help demo build test test-full test-torchrec check-torch lint format asan tsan fuzz bench clean

# $(call compile,PRESET): quiet where all is well.
compile = cmake --preset $(1) $(if $(filter 1,$(BYWAY_NO_TORCH)),-DBYWAY_TORCH=OFF) --log-level=WARNING >/dev/null && cmake --build --preset $(1) -j $(JOBS)

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z -]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' Makefile

demo:  ## set up, build and run the demo: byway-demo.png, byway-demo.json
	@scripts/setup.sh demo
	@$(call compile,demo)
	@cmake --install build/demo >build/demo/install.log
	.venv/bin/byway demo

build:  ## set up and build the dev preset; install the command in .venv/bin
	@scripts/setup.sh test
	@$(call compile,dev)
	@cmake --install build/dev >build/dev/install.log

test: build  ## all tests but the long ones (CTest, then pytest)
	@.venv/bin/python scripts/run_tests.py

test-full: fuzz build  ## every test, and the fuzz targets
	@.venv/bin/python scripts/run_tests.py --full

test-torchrec: build  ## TorchRec itself on CPU, and all of the relay's tests (part of test-full)
	@BYWAY_BUILD_DIR=build/dev .venv/bin/python -m pytest -q tests/torchrec tests/torch/test_relay_*.py

check-torch: build  ## compile the PyTorch backend with the headers of torch 2.11 and 2.14 (downloads their wheels)
	@.venv/bin/python scripts/check_torch.py

lint:  ## clang-format, clang-tidy on what changed, ruff
	@scripts/setup.sh lint
	@$(call compile,dev)
	@scripts/lint.sh

format:  ## rewrite all sources in the project's format
	@scripts/setup.sh lint
	@scripts/lint.sh --fix

asan tsan:  ## the C++ tests under a sanitizer
	@scripts/setup.sh test
	@$(call compile,$@)
	@scripts/sanitized.sh $@

fuzz:  ## every fuzz target for FUZZ_SECONDS (300), with clang
	@scripts/setup.sh fuzz
	@$(call compile,$@)
	@scripts/fuzz.sh

bench:  ## build and run the benchmarks (release)
	@scripts/setup.sh test
	@$(call compile,release)
	@set -e; for program in build/release/bench/*_bench; do echo "== $$program"; "$$program"; done

clean:  ## remove what was built; .venv stays
	rm -rf build
