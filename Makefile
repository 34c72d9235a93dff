# Everything runs in .venv, which the first target that needs it makes. PYTHON names the interpreter to make it with.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# One BLAS thread a test process: the processes already use every core.
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

.PHONY: demo test test-slow test-coverage test-oldest test-sdist check format docs bench bench-scale fuzz wheel clean

demo: $(VENV)/.demo
	$(BIN)/hyperelm run lorenz

test: $(VENV)/.test
	$(TEST_ENV) $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not site"

# What takes minutes, such as the paper's table on the images that HYPERELM_CIFAR10 names.
test-slow: $(VENV)/.test
	$(TEST_ENV) $(BIN)/python -m pytest -m slow -rs

# Which lines the tests run: in the terminal those that they do not, in htmlcov/index.html every file.
test-coverage: $(VENV)/.coverage
	$(TEST_ENV) $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not site" --cov --cov-report term-missing:skip-covered --cov-report html

check: $(VENV)/.check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.check
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The site in docs/_build/html, with warnings as errors, and then looked at in a browser.
docs: $(VENV)/.docs
	$(TEST_ENV) $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html -d docs/_build/doctrees docs docs/_build/html
	$(TEST_ENV) $(BIN)/python -m pytest -n auto -m site tests/test_site.py
	@echo "The site: docs/_build/html/index.html"

bench: $(VENV)/.demo
	$(BIN)/python benchmarks/matmul.py
	$(BIN)/python benchmarks/training.py --json benchmarks/training.json
	$(BIN)/python benchmarks/parts.py --paper
	$(BIN)/python benchmarks/lorenz.py --json benchmarks/lorenz.json
	$(BIN)/python benchmarks/selection.py --json benchmarks/selection.json

# A million images from a file, one and two workers, and the cost model: a quarter of an hour and 3 GB of disk.
bench-scale: $(VENV)/.test
	$(BIN)/python benchmarks/scale.py --json benchmarks/scale.json

# Mutated files of every kind; `--first n --count 1` repeats case n.
fuzz: $(VENV)/.test
	$(BIN)/python tools/fuzz.py model --seed 1 --count 100000
	$(BIN)/python tools/fuzz.py series settings cifar results report --seed 1 --count 10000

# The suite on the lowest versions that pyproject.toml allows. This scikit-learn wants to be told when it is imported.
test-oldest:
	$(PYTHON) -m venv --clear .venv-oldest
	$(PYTHON) tools/oldest.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/pip install --quiet --constraint .venv-oldest/constraints.txt --editable '.[test]'
	SCIPY_ARRAY_API=1 $(TEST_ENV) .venv-oldest/bin/python -m pytest -n auto --dist worksteal -m "not slow and not site"

# The wheel, imported where neither the sources nor any extra are.
wheel: $(VENV)/.check
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(PYTHON) -m venv --clear .venv-wheel
	.venv-wheel/bin/pip install --quiet dist/*.whl
	cd dist && ../.venv-wheel/bin/python -c "import hyperelm; print('hyperelm', hyperelm.__version__, 'imports from its wheel')"
	! .venv-wheel/bin/hyperelm algebras

# The suite that the source distribution brings along, on the files in it alone.
test-sdist: wheel $(VENV)/.test
	rm -rf build/sdist
	mkdir -p build/sdist
	tar -xzf dist/*.tar.gz -C build/sdist --strip-components 1
	cd build/sdist && PYTHONPATH=$(CURDIR)/build/sdist/src $(TEST_ENV) $(abspath $(BIN))/python -m pytest -n auto --dist worksteal -m "not slow and not site"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable '.[cli]'
	touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable '.[test]'
	touch $@

$(VENV)/.coverage: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable '.[coverage]'
	touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable '.[docs,test]'
	touch $@

$(VENV)/.check: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable '.[cli,check]'
	touch $@

clean:
	rm -rf .venv .venv-oldest .venv-wheel dist build docs/_build docs/api docs/gallery results-* htmlcov .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
