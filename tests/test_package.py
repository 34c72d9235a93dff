"""The public surface is what the design lists, and imports go one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType

import pytest

import hyperelm

SOURCES = Path(hyperelm.__file__).parent

# The public surface; what has not been built yet is absent.
PUBLIC = {
    *("Algebra", "algebras", "linalg", "pack", "unpack", "ELMAutoencoder", "ELMClassifier", "ELMRegressor"),
    *("ELMRegressorCV", "compare", "BiasOnlyWarning", "RankDeficiencyWarning"),
    *("datasets", "metrics", "experiments", "dask", "load", "save", "to_onnx"),
}

# Each part may import those before it.
ORDER = [
    *(
        "_arrays",
        "_container",
        "_files",
        "_lazy",
        "_memory",
        "_validation",
        "notation",
        "laws",
        "structure",
        "algebra",
        "algebras",
        "families",
        "decomposition",
        "bilinear",
        "planes",
        "products",
        "solvers",
        "linalg",
    ),
    *(
        "packing",
        "activations",
        "metrics",
        "elm",
        "comparison",
        "datasets",
        "io",
        "onnx",
        "dask",
        "experiments",
        "tables",
        "cli",
        "__main__",
    ),
]
# Packages that only some parts may use.
RESERVED = {
    "sklearn": ORDER[ORDER.index("elm") :],
    "matplotlib": ["comparison", "experiments"],
    "jinja2": ["experiments"],
    "dask": ["dask"],
    "onnx": ["onnx"],
    "safetensors": ["_container"],
    "distributed": ["dask"],
    "typer": ["cli"],
    "rich": ["cli", "experiments"],
    "torch": [],
    "array_api_compat": ["_arrays"],
}


def imports(path):
    """The modules that a file imports, at any depth."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            if node.module == "hyperelm":
                yield from (f"hyperelm.{alias.name}" for alias in node.names)


def parts():
    for path in sorted(SOURCES.rglob("*.py")):
        part = path.relative_to(SOURCES).parts[0].removesuffix(".py")
        if part != "__init__":
            yield part, path


def test_public_names():
    assert all(hasattr(hyperelm, name) for name in dir(hyperelm))
    leaked = {
        name for name, value in vars(hyperelm).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert leaked <= PUBLIC
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hyperelm.nothing  # noqa: B018 (looking it up is what raises)
    assert set(dir(hyperelm)) == PUBLIC | {"__version__"}
    for module in (hyperelm.algebras, hyperelm.linalg):
        assert all(hasattr(module, name) for name in module.__all__)


def test_no_package_is_hidden_by_a_star():
    """What a user has imported stays what it is after `from hyperelm import *`."""
    packages = {*packages_distributions(), *sys.stdlib_module_names}
    assert not packages & {*hyperelm.__all__}
    assert PUBLIC - {*hyperelm.__all__} == {"dask"}


def test_imports_go_one_way():
    for part, path in parts():
        assert part in ORDER, f"{path}: give the new part its place in the order"
        for name in imports(path):
            if name.startswith("hyperelm."):
                other = name.split(".")[1]
                if other in ORDER:
                    assert ORDER.index(other) <= ORDER.index(part), f"{path} imports {name}"
            top = name.partition(".")[0]
            assert part in RESERVED.get(top, [part]), f"{path} imports {name}"


def test_no_module_is_too_long_to_read():
    for _, path in parts():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 410, path


def test_imports_without_any_extra():
    """Only the core dependencies, and nothing heavy at import."""
    code = """
import sys

class Absent:
    names = {"typer", "rich", "matplotlib", "jinja2", "skimage", "pandas", "dask", "torch", "onnx", "zarr", "polars"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
import hyperelm
assert all(hasattr(hyperelm, name) for name in dir(hyperelm))
"""
    subprocess.run([sys.executable, "-c", code], check=True)
