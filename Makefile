# What a person or CI does with this tree. `make` alone lists it.
# Needs make and Python 3.11 or newer; everything else is made here. Another Python: make serve PYTHON=python3.13

WORKERS ?= 2
NAME ?= speed
ARGS ?=
TESTS := .venv-test/bin
# By this pin alone a build without CUDA is installed; it is in no lock, since a GPU machine has its own.
TORCH := torch==2.13.0
# The real engine that the load client is tried against; what it needs comes with it, torch by the pin above.
ENGINE := transformers==5.24.0 accelerate==1.15.0 openai==3.57.0

# Tests never see the settings of the person who runs them: every PHASELINE_ variable goes but PHASELINE_TESTS_*.
WITHOUT_SETTINGS = env $$(env | sed -n 's/^\(PHASELINE_[A-Za-z0-9_]*\)=.*/\1/p' | grep -v '^PHASELINE_TESTS_' | sed 's/^/-u /')

.DEFAULT_GOAL := help
.PHONY: help serve test lint soak bench screenshots lock vendor clean environment environment-test

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

serve: environment ## serve on 127.0.0.1:8000; PHASELINE_ settings count (docs/operation.md)
	@exec .venv/bin/phaseline serve

test: environment-test ## everything: lint, then all tests but the soak tests
	@scripts/install_test_packages
	@$(MAKE) --no-print-directory lint
	$(WITHOUT_SETTINGS) $(TESTS)/python -m pytest -p tests.no_skips -n $(WORKERS) -m "not soak" $(ARGS)

lint: environment-test ## the static part alone: ruff, mypy --strict, import-linter
	$(TESTS)/ruff check .
	$(TESTS)/ruff format --check .
	$(TESTS)/mypy
	$(TESTS)/lint-imports

soak: environment-test ## the tests with long counts
	@scripts/install_test_packages
	$(WITHOUT_SETTINGS) $(TESTS)/python -m pytest -p tests.no_skips -n $(WORKERS) -m soak --timeout 3600 $(ARGS)

bench: environment-test ## one benchmark: make bench NAME=speed ARGS=--json
	@$(WITHOUT_SETTINGS) $(TESTS)/python -m benchmarks.$(NAME) $(ARGS)

screenshots: environment-test ## pictures of the real pages for the documentation
	@scripts/install_test_packages
	@PATH="$(CURDIR)/$(TESTS):$$PATH" $(WITHOUT_SETTINGS) scripts/screenshots $(ARGS)

lock: ## resolve pyproject.toml into the two lock files anew; newest versions: ARGS=--upgrade
	@scripts/lock $(ARGS)

vendor: environment-test ## fetch the pinned browser libraries into static/vendor anew
	@PATH="$(CURDIR)/$(TESTS):$$PATH" scripts/vendor $(ARGS)

clean: ## remove what was made here, never the data
	rm -rf .venv .venv-test build phaseline.egg-info .mypy_cache .ruff_cache .import_linter_cache .hypothesis .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

environment:
	@scripts/environment .venv requirements.lock

environment-test:
	@scripts/environment .venv-test requirements-dev.lock $(TORCH) $(ENGINE)
