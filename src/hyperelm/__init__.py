"""Extreme learning machines over any hypercomplex algebra."""

from importlib import import_module as _import_module
from typing import Any as _Any

from hyperelm import algebras, datasets, linalg, metrics, progress
from hyperelm._algebra.algebra import Algebra
from hyperelm._estimators import (
    BiasOnlyWarning,
    ELMAutoencoder,
    ELMClassifier,
    ELMClassifierCV,
    ELMRegressor,
    ELMRegressorCV,
    RankDeficiencyWarning,
)
from hyperelm._estimators.columns import ColumnPlan
from hyperelm._estimators.comparison import compare
from hyperelm._estimators.frame import FrameClassifier, FrameRegressor
from hyperelm._files.description import describe
from hyperelm._files.models import load, save
from hyperelm._network.packing import pack, unpack

__version__ = "0.1.0.dev0"

# What is loaded when it is asked for, and from where.
_LAZY = {"dask": "dask", "experiments": "experiments", "to_onnx": "_files.onnx"}
__all__ = [  # without `dask`: `from hyperelm import *` would hide the package of that name
    "Algebra",
    "BiasOnlyWarning",
    "ColumnPlan",
    "ELMAutoencoder",
    "ELMClassifier",
    "ELMClassifierCV",
    "ELMRegressor",
    "ELMRegressorCV",
    "FrameClassifier",
    "FrameRegressor",
    "RankDeficiencyWarning",
    "algebras",
    "compare",
    "datasets",
    "describe",
    "experiments",
    "linalg",
    "load",
    "metrics",
    "pack",
    "progress",
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
    return [*__all__, "dask", "__version__"]
