# Works with GNU make 3.81, which macOS ships.
#
#   make run                    set up, index the sample documents, open the page
#   make run DOCS=~/papers      the same for a folder of your own
#   make test                   set up, run the test suite
#   make check                  set up, lint, format check, types
#   make setup                  the set-up alone
#     PYTHON=python3.12         the Python to start from
#     TORCH_INDEX=URL           the package index to take torch from
#     FAISS=gpu                 the GPU build of FAISS (Linux, CUDA)
#   make clean                  remove .venv, caches and build output; collections stay

PYTHON ?= python3
FAISS ?= cpu
TORCH_INDEX ?=
DOCS ?=
export DOCS

BIN = .venv/bin

.PHONY: run test check setup clean

setup:
	@$(PYTHON) scripts/check_system.py
	@$(PYTHON) scripts/set_up.py --faiss '$(FAISS)' --torch-index '$(TORCH_INDEX)'

run: setup
	@$(BIN)/python -m scripts.run

test: setup
	@$(BIN)/python -m pytest

check: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
