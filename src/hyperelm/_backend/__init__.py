"""Where arithmetic runs: one interface, NumPy behind it, and any other array library beside it.

`backend_of` finds the kernels for an array. Nothing outside of this room asks where an array lives: it calls a kernel,
or one of the functions of `arrays`, which take arrays of every library. This room knows nothing of algebras: it sees
arrays, matrices of coefficients and lists of products.
"""

from __future__ import annotations

from typing import Any

from hyperelm._backend.arrays import is_elsewhere, namespace
from hyperelm._backend.by_array_api import ARRAY_API
from hyperelm._backend.by_numpy import NumpyBackend, chunks
from hyperelm._backend.interface import Backend, Beside, Examined, Pair, Sums, Terms

__all__ = ["NUMPY", "Backend", "Beside", "Examined", "Pair", "Sums", "Terms", "backend_of", "chunks"]

NUMPY = NumpyBackend()


def backend_of(*arrays: Any, **named: Any) -> Backend:
    """The kernels for arrays, which must be of one library on one device if their names are given."""
    if named:
        namespace(**named)
    return ARRAY_API if any(map(is_elsewhere, (*arrays, *named.values()))) else NUMPY
