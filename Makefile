# Everything runs in .venv, made by plain venv and pip. `make` alone lists the targets.

PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder --maxprocesses 4 --numprocesses
STAMP := .venv/.set-up
# What chatting needs comes first, by itself. STAMP adds the tools for development to it.
CHAT_STAMP := .venv/.set-up-chat
MODEL := .cache/random-tiny
# A vocabulary of Qwen's size, for what costs the more the larger it is.
WIDE := .cache/random-wide
# Layers enough for a draft of a few of them.
DEEP := .cache/random-deep
# One that sees, whose answers take longer than what surrounds them.
SEEING := .cache/random-seeing

# A name of its own, since `make -n test` would run a recipe that contains $(MAKE).
OTHERS := $(MAKE) --no-print-directory -j3 c go lua node rust
# `make test` sets SAMPLE. Then one compiler checks the C host, the examples for Node are only compiled, and the linters and
# sanitizers that compile everything once more do not run, nor the kit's cases but these. They alone show what a host
# writes: tests/conformance_host compares what users of all hosts receive.
SAMPLE :=
KIT := $(if $(SAMPLE),--only commands)

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
NVIM := nvim --headless -u NONE -i NONE -n

SOURCE := protocol worker clients tools
PROSE := README.md PROTOCOL.md ARCHITECTURE.md CONTRIBUTING.md SECURITY.md docs protocol/MODELS.md worker/MOCK.md

.DEFAULT_GOAL := help
.PHONY: help setup chat test test-all check shake suite c go lua node rust apps conformance style lint format schema traceability lock docs man wheel dist bench

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv and install lmwire in it, for development (the other targets do it when needed)

chat: $(CHAT_STAMP) ## chat with the tiny model that is built in; one exchange without a terminal
# `set -m` gives the chat a process group of its own: its Ctrl-C must not end make.
	@if [ -t 0 ] && [ -t 1 ]; then \
		set -m; $(BIN)/lmwire chat; \
	else \
		echo '$$ lmwire chat -p "Who are you?"'; \
		$(BIN)/lmwire chat -p "Who are you?" </dev/null; \
	fi

# Each of the many programs that the tests start would compile lmwire's modules again if this were set.
test test-all check shake: export PYTHONDONTWRITEBYTECODE :=

test: $(STAMP) ## check what a commit needs: style, types, all fast and slow tests
	@$(MAKE) --no-print-directory style
	@$(MAKE) --no-print-directory suite MARKS="not nightly" HOSTS=all SAMPLE=yes

# The fast tests' coverage has a floor, which is measured at night since it doubles their time. The slow ones run most
# code in other processes, so that theirs would say little.
test-all: export LMWIRE_FUZZ_SECONDS ?= 20
test-all: $(STAMP) ## check everything, nightly tests too, and the fast tests' coverage
	@$(MAKE) --no-print-directory style
	@$(PYTEST) auto -m "not slow" --hypothesis-profile=nightly --cov --cov-report=term-missing:skip-covered
	@$(MAKE) --no-print-directory suite MARKS=slow HOSTS=all EXAMPLES=nightly
	$(BIN)/pyright

check: $(STAMP) ## check style, types and the fast tests; AREA=session checks style and one folder of tests
	@$(MAKE) --no-print-directory style
	@$(if $(AREA),$(BIN)/python -m pytest -m "not slow" tests/$(AREA),$(MAKE) --no-print-directory suite)

shake: $(STAMP) ## run a folder of tests, AREA=session, while its processes are stopped at random
	$(BIN)/python tools/shake.py $(or $(AREA),$(error name a folder of tests: make shake AREA=session))

# Types and the clients in other languages are checked while the tests run, and are reported after them. Three files of
# tests run at once on two cores, since the slow ones wait for a process or for the network; fast ones alone wait for
# nothing. One run has both, since each process of a run imports all files of tests. The files keep their order: xdist
# would move those with few tests to the end, and they take longest.
EXAMPLES := commit
MARKS := not slow
TYPES := $(BIN)/pyrefly check --summary=none
suite: $(STAMP) # MARKS selects the tests; HOSTS is empty without the other languages; SAMPLE tests less of them
	@logs=$$(mktemp -d); \
	$(TYPES) >$$logs/types 2>&1 & checker=$$!; \
	[ -z "$(HOSTS)" ] || $(OTHERS) SAMPLE=$(SAMPLE) >$$logs/others 2>&1 & makes=$$!; \
	$(PYTEST) $(if $(HOSTS),3,auto) -m "$(MARKS)" --hypothesis-profile=$(EXAMPLES) $(COVERAGE); tests=$$?; \
	wait $$makes; others=$$?; cat $$logs/others 2>/dev/null; \
	echo "$(TYPES)"; wait $$checker; typed=$$?; cat $$logs/types; \
	rm -r $$logs; exit $$((tests ? tests : others ? others : typed))

# Each compiler that is installed compiles the library as its users do, and its tests with its sanitizers.
C_BUILD := .cache/c
C_FLAGS := -Wall -Wextra -Wpedantic -Werror -Wconversion -Iclients/c
SANITIZE := -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
c: $(STAMP) ## check and test the C host, its examples and its installation, where a C compiler is installed
	@compilers=$$(for each in gcc clang; do command -v $$each || true; done$(if $(SAMPLE), | head -1)); \
	if [ -z "$$compilers" ]; then \
		echo "no C compiler is installed, so clients/c is not tested"; \
		[ "$$CI" != true ]; exit; \
	fi; \
	missing() { echo "$$1 is not installed, so $$2 is not tested"; [ "$$CI" != true ] || exit 1; }; \
	set -e; \
	mkdir -p $(C_BUILD); \
	for compiler in $$compilers; do \
		cc="$$compiler -std=c11 -Wshadow $(C_FLAGS)"; \
		sanitize="$(SANITIZE)"; \
		echo "int main(void) { return 0; }" | $$cc $$sanitize -x c - -o $(C_BUILD)/probe 2>/dev/null || { \
			echo "$$compiler has no sanitizers, so its tests run without"; sanitize=; \
		}; \
		(set -x; \
		$$cc -O2 -c clients/c/lmwire.c -o $(C_BUILD)/lmwire.o; \
		$$cc -O2 clients/c/examples/chat.c $(C_BUILD)/lmwire.o -o $(C_BUILD)/chat; \
		$$cc $$sanitize clients/c/test/conformance_driver.c clients/c/lmwire.c -o $(C_BUILD)/conformance_driver; \
		$$cc -O2 clients/c/test/bench_host.c $(C_BUILD)/lmwire.o -o $(C_BUILD)/bench; \
		$$cc -O2 clients/c/test/bundle_chat.c $(C_BUILD)/lmwire.o -o $(C_BUILD)/bundle_chat; \
		$$cc $$sanitize clients/c/test/test_lmwire.c -o $(C_BUILD)/test_lmwire; \
		$(C_BUILD)/test_lmwire protocol/vectors); \
	done; \
	export LMWIRE_WORKER=$(CURDIR)/$(BIN)/lmwire; \
	echo "Who are you?" | $(C_BUILD)/chat | grep "tiny model"; \
	if command -v c++ >/dev/null; then (set -x; \
		c++ -std=c++17 $(C_FLAGS) clients/c/examples/chat.cpp $(C_BUILD)/lmwire.o -o $(C_BUILD)/chat++; \
		$(C_BUILD)/chat++ | grep "tiny model"); \
	else missing "a C++ compiler" "the example in C++"; fi; \
	if command -v cmake >/dev/null && command -v pkg-config >/dev/null; then (set -x; \
		cmake -S clients/c -B $(C_BUILD)/cmake -DCMAKE_INSTALL_PREFIX=$(CURDIR)/$(C_BUILD)/installed >/dev/null; \
		cmake --build $(C_BUILD)/cmake --target install >/dev/null; \
		found=$$(PKG_CONFIG_PATH=$(C_BUILD)/installed/lib/pkgconfig pkg-config --cflags --libs lmwire); \
		cc clients/c/examples/chat.c -o $(C_BUILD)/chat $$found); \
	else missing "cmake or pkg-config" "the installation of clients/c"; fi; \
	if command -v swiftc >/dev/null; then (set -x; \
		swiftc -typecheck -I clients/c clients/c/examples/chat.swift); \
	else echo "swiftc is not installed, so the example in Swift is not checked"; fi; \
	set -x; \
	$(BIN)/lmwire conformance host --timeout 120 $(KIT) -- $(C_BUILD)/conformance_driver

go: $(STAMP) ## check and test the Go client and its example, where Go is installed
	@if ! command -v go >/dev/null; then \
		echo "Go is not installed, so clients/go is not tested"; \
		[ "$$CI" != true ]; exit; \
	fi; \
	test -z "$$(gofmt -l clients/go examples | tee /dev/stderr)" || exit 1; \
	linter=$(if $(SAMPLE),true,$(CURDIR)/.cache/go/staticcheck); \
	[ $$linter = true ] || GOBIN="$${linter%/*}" go install $(STATICCHECK) || { \
		echo "staticcheck cannot be fetched, so it does not run"; linter=true; [ "$$CI" != true ] || exit 1; \
	}; \
	set -e; \
	for module in clients/go examples/go-commit; do \
		(set -x; cd $$module; go vet ./...; "$$linter" -checks all ./...; go test $(if $(SAMPLE),,-race) ./...); \
	done

lua: $(STAMP) ## check and test the Neovim plugin, where nvim is installed
	@if ! command -v nvim >/dev/null; then \
		echo "nvim is not installed, so examples/neovim is not tested"; \
		[ "$$CI" != true ]; exit; \
	fi; \
	if command -v luacheck >/dev/null; then (cd examples/neovim; luacheck --quiet .) || exit 1; fi; \
	set -ex; \
	LMWIRE=$(CURDIR)/$(BIN)/lmwire $(NVIM) -c "luafile examples/neovim/test/run.lua" </dev/null; \
	$(BIN)/lmwire conformance host --timeout 120 $(KIT) -- $(NVIM) -c "luafile examples/neovim/test/conformance_driver.lua"

# npm notes in node_modules what it has installed. To install that again would take longer than the tests.
NPM_CI := [ node_modules/.package-lock.json -nt package-lock.json ] && [ node_modules/.package-lock.json -nt package.json ] \
	|| "$$npm" ci --silent

# The AI SDK needs Node 22. Where `node` is older, its provider runs with the Node that the tests of clients install.
node: $(STAMP) ## check and test the Node client, the AI SDK provider, the Electron app and the VS Code extension, where npm is installed
	@if ! npm=$$(command -v npm); then \
		echo "npm is not installed, so clients/node is not tested"; \
		[ "$$CI" != true ]; exit; \
	fi; \
	set -e; \
	for package in clients/node clients/node-ai-sdk examples/electron examples/vscode; do \
		path=$$PATH; \
		if [ $$package = clients/node-ai-sdk ] && [ "$$(node -p 'parseInt(process.versions.node)')" -lt 22 ]; then \
			newer=$$(PYTHONPATH=tests $(BIN)/python -m support.clients.installation) || { \
				echo "$$package needs Node 22, so it is not tested"; [ "$$CI" != true ] || exit 1; continue; \
			}; \
			path=$$newer:$$PATH; \
		fi; \
		(cd $$package; PATH=$$path; $(NPM_CI)) || { echo "$$package cannot be installed, so it is not tested"; [ "$$CI" != true ]; exit; }; \
		script=test; \
		case "$(SAMPLE) $$package" in yes\ examples/*) script=build;; esac; \
		(set -x; export PATH="$$path"; cd $$package; "$$npm" run --silent lint; "$$npm" run --silent $$script); \
	done; \
	$(BIN)/lmwire conformance host --timeout 120 $(KIT) -- node clients/node/dist/test/conformance-driver.js

rust: $(STAMP) ## check and test the Rust client and its examples, where cargo is installed
	@if ! command -v cargo >/dev/null; then \
		echo "cargo is not installed, so clients/rust is not tested"; \
		[ "$$CI" != true ]; exit; \
	fi; \
	export CARGO_TARGET_DIR=$(CURDIR)/.cache/rust; \
	cargo fetch --quiet || { echo "the crates cannot be fetched, so clients/rust is not tested"; [ "$$CI" != true ]; exit; }; \
	set -ex; \
	cargo fmt --all --check; \
	cargo test --quiet; \
	$(if $(SAMPLE),,cargo clippy --quiet --all-targets -- -D warnings;) \
	$(if $(SAMPLE),,RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --package lmwire;) \
	$(BIN)/lmwire conformance host --timeout 120 $(KIT) -- $$CARGO_TARGET_DIR/debug/examples/conformance_driver

apps: ## check the Tauri app, in minutes; on Linux it needs libwebkit2gtk-4.1-dev
	@[ "$$(uname)" != Linux ] || pkg-config --exists webkit2gtk-4.1 || { \
		echo "the Tauri app needs WebKitGTK: apt-get install libwebkit2gtk-4.1-dev pkg-config" >&2; \
		exit 1; \
	}
	cd examples/tauri/src-tauri && cargo fmt --check
	cd examples/tauri/src-tauri && CARGO_TARGET_DIR=$(CURDIR)/.cache/tauri cargo clippy -- -D warnings

conformance: $(STAMP) ## play every transcript with a random, the built-in and a seeing model, in some minutes
	LMWIRE_CONFORMANCE=all $(BIN)/python -m pytest tests/conformance/test_workers.py

style: $(STAMP) ## check format, lint, schema, prose and the directions of imports
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/python -m lmwire_protocol.schema --check
	$(BIN)/python tools/flat_tables.py --check
	$(BIN)/python tools/prose_habits.py $(SOURCE) tests $(PROSE)
	$(BIN)/lint-imports --no-cache

lint: $(STAMP) ## check style and types
	@$(MAKE) --no-print-directory style
	$(TYPES)

format: $(STAMP) ## rewrite the Python files in the project's format
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

schema: $(STAMP) ## rewrite protocol/schema from the protocol's Structs, and the tables of hosts from it
	$(BIN)/python -m lmwire_protocol.schema
	$(BIN)/python tools/flat_tables.py

traceability: $(STAMP) ## rewrite protocol/transcripts/TRACEABILITY.md; it keeps the tests that are entered by hand
	PYTHONPATH=tests $(BIN)/python -m support.protocol.traceability

COMPILE := .cache/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-annotate --custom-compile-command "make lock"
CLIENTS := tests/real_clients

lock: ## bring requirements*.txt and those of the real clients in line (LOCK_FLAGS=--upgrade takes the newest versions)
	$(PYTHON) -m venv .cache/lock
	.cache/lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(COMPILE) --extra dev --output-file requirements-dev.txt $(LOCK_FLAGS) pyproject.toml
	$(COMPILE) --extra checkout --constraints requirements-dev.txt --output-file requirements.txt pyproject.toml
	for file in $(CLIENTS)/requirements/*.in; do \
		$(COMPILE) --output-file $${file%.in}.txt $(LOCK_FLAGS) $$file || exit; \
	done
	npm install --prefix $(CLIENTS) --package-lock-only --ignore-scripts

docs: export NO_MKDOCS_2_WARNING := 1
docs: $(STAMP) ## build the documentation site in .cache/site (DOCS=serve shows it while you write)
	$(BIN)/mkdocs $(or $(DOCS),build) --strict --config-file tools/docs_site/mkdocs.yml

man: $(STAMP) ## write the manual pages into .cache/man; the wheel gets its own
	$(BIN)/python tools/man_pages.py .cache/man

wheel: $(STAMP) ## build the wheel into dist/, to install with pip or to run with uvx
	$(BIN)/hatchling build --target wheel --directory dist

dist: $(STAMP) ## build the wheel and the source archive into dist/
	$(BIN)/hatchling build --directory dist

bench: $(MODEL)/config.json $(WIDE)/config.json $(DEEP)/config.json $(SEEING)/config.json ## measure what the worker costs and saves, in some minutes
	$(BIN)/lmwire bench pipe --model $(MODEL)
	$(BIN)/lmwire bench generation --model $(MODEL)
	$(BIN)/lmwire bench mixed --model $(WIDE) --rounds 1
	$(BIN)/lmwire bench cache --model $(MODEL)
	$(BIN)/lmwire bench draft --model $(DEEP)
	$(BIN)/lmwire bench generation --model $(WIDE) --tokens 64 --rounds 2
	$(BIN)/lmwire bench vision --model $(SEEING) --tokens 64 --rounds 3
	$(BIN)/lmwire bench http --model $(MODEL) --tokens 128 --rounds 3
	$(BIN)/lmwire bench agents --model $(MODEL) --shared-tokens 512 --rounds 3
	$(BIN)/lmwire bench hosts
	$(BIN)/lmwire bench start

# pip draws its progress on a terminal only. Elsewhere its hundred lines would hide what follows.
PIP_INSTALL := [ -t 1 ] || quiet=--quiet; $(BIN)/python -m pip install $$quiet --disable-pip-version-check
# A file lists everything, so pip must not look for dependencies: it would try versions newer than those listed.
INSTALL_LISTED = @$(PIP_INSTALL) --no-deps --only-binary :all: --require-hashes --requirement $(1) || { \
		echo "pip cannot install the packages: bring its index into reach or free some disk, and run make again" >&2; \
		exit 1; \
	}

$(CHAT_STAMP): pyproject.toml requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "lmwire needs Python 3.11 or newer, and $(PYTHON) is not. Name another: make setup PYTHON=python3.12" >&2; \
		exit 1; \
	}
	@echo "lmwire is installed into .venv, once: 70 MB to download, and 400 MB of disk."
	@$(PYTHON) -m venv .venv || { \
		echo "$(PYTHON) cannot make .venv: install its module venv (python3-venv on Debian), and run make again" >&2; \
		exit 1; \
	}
	$(call INSTALL_LISTED,requirements.txt)
# The package itself has no hash. Its build tool is pinned above, so pip fetches nothing more for it.
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(STAMP): $(CHAT_STAMP) requirements-dev.txt
	@echo "The tools for development are added to .venv, once: 370 MB to download, and 1.3 GB of disk."
	$(call INSTALL_LISTED,requirements-dev.txt)
	@touch $@

$(MODEL)/config.json: tools/tiny_model/random_model.py | $(STAMP)
	$(BIN)/python tools/tiny_model/random_model.py $(MODEL)

$(WIDE)/config.json: tools/tiny_model/random_model.py | $(STAMP)
	$(BIN)/python tools/tiny_model/random_model.py $(WIDE) --vocab-size 151936

$(DEEP)/config.json: tools/tiny_model/random_model.py | $(STAMP)
	$(BIN)/python tools/tiny_model/random_model.py $(DEEP) --layers 16

$(SEEING)/config.json: tools/tiny_model/random_vision.py | $(STAMP)
	$(BIN)/python tools/tiny_model/random_vision.py $(SEEING)
