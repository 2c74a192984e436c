# Thin: each target makes the clone ready, then leaves the work to CMake, CTest or the command.
ready = tools/bootstrap.sh
python = .venv/bin/python

.PHONY: all test place_without_space test-dax test-cluster demo docs soak bench-quick tidy format clean
all:
	$(ready)

# Tests preload libraries, and ld.so takes a space in a path for a separator.
test: place_without_space all
	$(python) tools/run_tests.py --preset dev

place_without_space:
	@case '$(CURDIR)' in *[[:space:]]*) \
	  echo "make test: '$(CURDIR)' has a space; make test in a clone without one" >&2; exit 2;; esac

# Kills virtual machines with an emulated NVDIMM; exit code 3, with the reason, is a skip.
test-dax: all
	$(python) tests/dax/run.py || [ $$? = 3 ]

# Takes nodes from jobs of a real Slurm, and hosts from jobs without one; skipped, with the reason,
# where that can't be.
test-cluster: all
	$(python) -m pytest -q -rs -p no:cacheprovider tests/cluster

demo:
	$(ready) --demo
	./perdure demo

# The documents as a site, build/docs/index.html: no network is needed to build it, nor to read it.
docs:
	$(ready) --no-build
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet
	@echo 'make docs: build/docs/index.html'

soak: all
	PERDURE_SLOW_TESTS=1 $(python) tools/run_tests.py --preset dev -R "python.(wheel|package)"
	$(python) tools/run_tests.py --preset dev -C soak -L soak
	$(python) tests/power/run.py || [ $$? = 3 ]
	./perdure bench crash
	./perdure bench kill kill_windows kill_cache kill_nodes
	$(python) tests/cluster/hosts_episodes.py --episodes 300 || [ $$? = 3 ]
	./perdure bench veloc python --quick

bench-quick: all
	./perdure bench all --quick

tidy: all
	$(python) tools/tidy.py
	.venv/bin/ruff check
	.venv/bin/mypy
	PYTHONPATH=python .venv/bin/lint-imports --no-logo --no-cache
	$(python) tools/run_clang_tidy.py --build build/dev

format:
	git ls-files '*.[ch]' '*.[ch]pp' | xargs clang-format-19 -i

clean:
	rm -rf build .venv
