"""Extreme learning machines over any hypercomplex algebra."""

from hyperelm import algebras, linalg
from hyperelm.algebra import Algebra

__version__ = "0.1.0.dev0"

__all__ = ["Algebra", "algebras", "linalg"]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
