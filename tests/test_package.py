"""The public surface is what the design lists, and imports go one way."""

from __future__ import annotations

import ast
import re
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
    *(
        "ELMClassifierCV",
        "ELMRegressorCV",
        "ColumnPlan",
        "FrameClassifier",
        "FrameRegressor",
        "compare",
        "describe",
        "progress",
        "BiasOnlyWarning",
        "RankDeficiencyWarning",
    ),
    *("datasets", "metrics", "experiments", "dask", "load", "save", "to_onnx"),
}

# The rooms of the house: each may import those before it.
ORDER = [
    *("_lazy", "_backend", "_validation", "_algebra", "_linalg", "_solvers", "_network", "_training"),
    *("_estimators", "_files"),
    *("algebras", "families", "linalg", "metrics", "progress", "datasets", "dask", "experiments", "cli", "__main__"),
]
# Packages that only some parts may use.
RESERVED = {
    "sklearn": ORDER[ORDER.index("_estimators") :],
    "matplotlib": ["_estimators", "experiments"],
    "jinja2": ["experiments", "cli"],
    "dask": ["dask"],
    "onnx": ["_files"],
    "safetensors": ["_files"],
    "distributed": ["dask"],
    "typer": ["cli"],
    "rich": ["cli"],
    "torch": [],
    "array_api_compat": ["_backend"],
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


def private(path):
    """The underscored names of other rooms that a file imports or reads."""
    room = f"hyperelm.{path.relative_to(SOURCES).parts[0]}."
    tree = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    imported = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in tree
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "hyperelm"
        for alias in node.names
    } | {"hyperelm": "hyperelm"}
    read = [
        f"{imported[node.value.id]}.{node.attr}"
        for node in tree
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported
    ]
    foreign = [name for name in [*imported.values(), *read, *imports(path)] if not name.startswith(room)]
    return [name for name in foreign if name.startswith("hyperelm.") and re.search(r"\._(?!_)", name)]


def test_clients_use_public_names_only():
    """The experiments and the command line need nothing that their users cannot import."""
    for part, path in parts():
        if part in ("experiments", "cli"):
            assert private(path) == [], path


def test_no_module_is_too_long_to_read():
    for _, path in parts():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 450, path


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


# ---------------------------------------------------------------------- what belongs to a module


# Underscored attributes that a module reads and does not define, with the reason.
INHERITED = "a base class defines it for its subclasses, which use it on each other"
FOREIGN = {
    ("_estimators/base.py", "_check_components"): INHERITED,  # by RowChecks, for BaseELM
    (
        "_estimators/base.py",
        "_sklearn_output_config",
    ): "scikit-learn has no other way to ask what `set_output` was told",
    **{
        (f"_files/{name}.py", attribute): "scikit-learn's fitted transformers keep it under this name only"
        for name, attributes in {
            "pipelines": ("_fill_dtype", "_fit_dtype", "_sklearn_output_config", "_transformer_to_input_indices"),
            "restoring": ("_get_param_names", "_validate_params", "_validate_steps"),
        }.items()
        for attribute in attributes
    },
    ("_solvers/gram.py", "_count_as"): INHERITED,  # by Accumulator
    ("_solvers/qr.py", "_count_as"): INHERITED,
    ("_solvers/svd.py", "_count_as"): INHERITED,
    ("experiments/_runner.py", "_exit"): "os._exit is a documented function of Python",
    ("dask.py", "_meta"): "dask has no other name for the empty frame that has the types of a collection",
}
ACCUMULATORS = {"Gram", "QR", "AllRows", "Accumulator"}


def trees(*without):
    """The path of every file below src/hyperelm, from there on, and what it says."""
    for path in sorted(SOURCES.rglob("*.py")):
        name = path.relative_to(SOURCES).as_posix()
        if not name.startswith(without):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def is_private(name):
    return name.startswith("_") and not name.endswith("__")


def defined(tree):
    """The names that a file defines: functions and classes, what a class body assigns, and attributes it assigns to."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        if isinstance(node, ast.ClassDef):
            targets = [
                target for part in node.body for target in getattr(part, "targets", [getattr(part, "target", 0)])
            ]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def read(tree):
    """The attributes that a file reads of others than self, cls and super(), by name or through a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            of = node.value.func if isinstance(node.value, ast.Call) else node.value
            if not (isinstance(of, ast.Name) and of.id in ("self", "cls", "super")):
                yield node.attr, node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr", "setattr", "delattr"):
            of, name = node.args[:2]
            by_text = isinstance(name, ast.Constant) and ast.unparse(of) not in ("self", "cls")
            yield from [(name.value, node.lineno)] if by_text else []


def foreign(tree):
    """The underscored attributes that a file reads and does not define, with the lines."""
    own = set(defined(tree))
    return [(name, line) for name, line in read(tree) if is_private(name) and name not in own]


def test_no_module_reads_underscored_attributes_of_others():
    found = {(name, attribute): line for name, tree in trees() for attribute, line in foreign(tree)}
    assert {key: line for key, line in found.items() if key not in FOREIGN} == {}
    assert FOREIGN.keys() <= found.keys(), "an exception that is needed no more"


@pytest.mark.parametrize(
    ("code", "attributes"),
    [
        ("x._a", ["_a"]),
        ("f(x)._a.b", ["_a"]),
        ("getattr(x, '_a', None)", ["_a"]),
        ("self._a + cls._a + super()._a + x.__a__", []),
        ("x._a = 1\ny._a", []),
        ("class A:\n    _a: int\n    _b = 1\nx._a + x._b", []),
        ("def _a(): pass\nx._a", []),
        ("_a = 1\nx._a", ["_a"]),
    ],
)
def test_what_counts_as_reading_of_others(code, attributes):
    assert [name for name, _ in foreign(ast.parse(code))] == attributes


def test_only_the_backend_asks_where_an_array_lives():
    """By its name, or by comparing a namespace with NumPy."""
    for name, tree in trees("_backend/"):
        for node in ast.walk(tree):
            where = f"{name}:{getattr(node, 'lineno', '')}"
            names = [node.id] if isinstance(node, ast.Name) else [node.attr] if isinstance(node, ast.Attribute) else []
            names += [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
            assert "is_elsewhere" not in names, where
            if isinstance(node, ast.Compare):
                sides = {ast.unparse(side) for side in (node.left, *node.comparators)}
                assert not sides & {"np", "numpy"}, where


def test_only_the_solvers_ask_which_accumulator_it_is():
    for name, tree in trees("_solvers/"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
                of = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
                of |= {part.attr for part in ast.walk(node.args[1]) if isinstance(part, ast.Attribute)}
                assert not of & ACCUMULATORS, f"{name}:{node.lineno}"
            if isinstance(node, ast.Compare):
                sides = (node.left, *node.comparators)
                is_type = any(ast.unparse(side).startswith("type(") for side in sides)
                of = {part.id for side in sides for part in ast.walk(side) if isinstance(part, ast.Name)}
                assert not (is_type and of & ACCUMULATORS), f"{name}:{node.lineno}"
