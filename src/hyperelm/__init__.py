"""Extreme learning machines over any hypercomplex algebra."""

from hyperelm import algebras, linalg
from hyperelm.algebra import Algebra
from hyperelm.elm import ELMAutoencoder, ELMClassifier, ELMRegressor
from hyperelm.packing import pack, unpack

__version__ = "0.1.0.dev0"

__all__ = ["Algebra", "ELMAutoencoder", "ELMClassifier", "ELMRegressor", "algebras", "linalg", "pack", "unpack"]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
