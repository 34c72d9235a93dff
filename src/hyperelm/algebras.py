"""The catalogue of algebras and the families of algebras that have parameters."""

from hyperelm._algebra.catalogue import cayley_dickson, clifford, get, names

__all__ = ["cayley_dickson", "clifford", "get", "names"]
