"""The catalogue of algebras, the families of algebras that have parameters, and algebras that are learned from data."""

from hyperelm._algebra.catalogue import cayley_dickson, clifford, get, names
from hyperelm._algebra.learning import learn

__all__ = ["cayley_dickson", "clifford", "get", "learn", "names"]
