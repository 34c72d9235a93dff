"""Every public name says what it is: a summary, its parameters with shapes, what it returns, an example that runs."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpydoc.docscrape
import pytest

import hyperelm

# What users import from; `hyperelm._solvers` and the like are for people who change hyperelm itself.
MODULES = [
    "hyperelm",
    *(f"hyperelm.{name}" for name in dir(hyperelm) if inspect.ismodule(getattr(hyperelm, name))),
]


def public() -> Iterator[tuple[str, Any, bool]]:
    """Name, object, and whether it must have an example of its own: methods may be shown by their class."""
    seen = set()
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in getattr(module, "__all__", []):
            value = getattr(module, name)
            if inspect.ismodule(value) or not callable(value) or id(value) in seen or not is_ours(value):
                continue
            seen.add(id(value))
            yield f"{module_name}.{name}", value, True
            if inspect.isclass(value):
                yield from ((f"{module_name}.{name}.{method}", f, False) for method, f in members(value))


def members(cls: type) -> Iterator[tuple[str, Any]]:
    for name, value in inspect.getmembers(cls):
        if name.startswith("_") or (name.startswith("set_") and name.endswith("_request")):
            continue  # scikit-learn makes the latter
        if isinstance(value, (property, cached_property)) or (callable(value) and is_ours(value)):
            yield name, value


def is_ours(value: Any) -> bool:
    return getattr(value, "__module__", "").startswith("hyperelm")


PUBLIC = list(public())


def test_there_is_something_to_check():
    assert {"hyperelm.ELMRegressor", "hyperelm.ELMRegressor.fit", "hyperelm.Algebra.norm"} <= {n for n, *_ in PUBLIC}


@pytest.mark.parametrize(("name", "value", "whole"), PUBLIC, ids=[name for name, *_ in PUBLIC])
def test_docstring(name, value, whole):
    text = inspect.getdoc(value) or ""
    assert text, f"{name} has no docstring"
    doc = numpydoc.docscrape.NumpyDocString(text)
    assert "".join(doc["Summary"]).endswith((".", "?")), f"{name}: a first sentence that ends"
    if whole:
        assert any(">>>" in line for line in doc["Examples"]), f"{name}: an example that runs"
    if isinstance(value, (property, cached_property)):
        return
    wanted = parameters(value)
    described = {part.strip(" *") for p in doc["Parameters"] for part in p.name.split(",")}
    attributes = {part.strip() for p in doc["Attributes"] for part in p.name.split(",")}  # of a dataclass
    in_words = set() if whole or doc["Parameters"] else set(re.findall(r"\w+", text))  # of a short method
    assert set(wanted) <= described | attributes | in_words, (
        f"{name}: {sorted(set(wanted) - described)} are not described"
    )
    assert described <= set(wanted), f"{name}: describes {sorted(described - set(wanted))}, which it does not have"
    for p in doc["Parameters"]:
        assert "array" not in p.type or "shape" in p.type, f"{name}: the shape of `{p.name}`"
    if whole and inspect.isfunction(value) and inspect.signature(value).return_annotation not in (None, "None"):
        assert doc["Returns"] or doc["Yields"], f"{name}: what it returns"


def parameters(value: Any) -> list[str]:
    function = value.__init__ if inspect.isclass(value) else value
    if inspect.isclass(value) and issubclass(value, BaseException):
        return []
    names = list(inspect.signature(function).parameters)
    return [n for n in names if n not in ("self", "cls")]


def test_reference_is_complete():
    page = (Path(__file__).parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
    listed = {line.strip() for line in page.splitlines()}
    missing = [name for name, _, whole in PUBLIC if whole and name.removeprefix("hyperelm.") not in listed]
    assert not missing, "list these in docs/api.md"
