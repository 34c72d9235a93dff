"""Extreme learning machines over any hypercomplex algebra."""

from importlib import import_module as _import_module
from typing import Any as _Any

from hyperelm import algebras, linalg, metrics
from hyperelm import datasets as datasets
from hyperelm.algebra import Algebra
from hyperelm.comparison import compare
from hyperelm.elm import ELMAutoencoder, ELMClassifier, ELMRegressor, ELMRegressorCV
from hyperelm.io import load, save
from hyperelm.packing import pack, unpack

__version__ = "0.1.0.dev0"

# What is loaded when it is asked for, and from where.
_LAZY = {"dask": "dask", "experiments": "experiments", "to_onnx": "onnx"}
# Public, too, but not for `from hyperelm import *`, which would hide packages of these names.
_NAMESAKES = ["dask", "datasets"]
__all__ = [
    "Algebra",
    "ELMAutoencoder",
    "ELMClassifier",
    "ELMRegressor",
    "ELMRegressorCV",
    "algebras",
    "compare",
    "experiments",
    "linalg",
    "load",
    "metrics",
    "pack",
    "save",
    "to_onnx",
    "unpack",
]


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        module = _import_module(f"hyperelm.{_LAZY[name]}")
        return module if _LAZY[name] == name else getattr(module, name)
    raise AttributeError(f"module 'hyperelm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_NAMESAKES, "__version__"]
